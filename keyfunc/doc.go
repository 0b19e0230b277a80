// Package keyfunc has the key functions for HTTP: each constructor makes an
// [HTTP], which turns a request into the key that it is limited by. Requests
// with equal keys share a limit. Package rpckey has the key functions for gRPC;
// a client has the same key over both.
//
// # Which constructor
//
//	deployment                                   HTTP                            gRPC (rpckey)
//	clients connect to this server directly      ClientIP()                      PeerIP()
//	behind proxies whose addresses are known     ClientIP(prefixes...)           ClientIP(prefixes...)
//	the same, and they write another header      IPConfig{Header: name, ...}     FromConfig(keyfunc.IPConfig)
//	the same, and they write RFC 7239            IPConfig{Header: "Forwarded"}   FromConfig(keyfunc.IPConfig)
//	behind n proxies whose addresses change      IPConfig{Hops: n, TrustAll: ..} FromConfig(keyfunc.IPConfig)
//	behind a proxy on a Unix socket              IPConfig{TrustUnix: true}       FromConfig(keyfunc.IPConfig)
//	behind authentication                        Context(get)                    Context(get)
//	API keys, before they are checked            Secret(header, pepper)
//	login attempts, per account                  BasicUser()
//	mutual TLS                                   ClientCert()                    TLSIdentity()
//	a header set by a gateway                    Header(name)                    Metadata(name)
//	per route                                    Route(), or Pattern(mux)        FullMethod(), Service()
//	per virtual host                             Host(names...)
//	several of these together                    Join(...)                       Join(...)
//	the first of these that a request has        Or(...)                         Or(...)
//	one limit for all requests                   Global()                        Global()
//
// # The address of a client
//
// There is no safe default. The client starts X-Forwarded-For and each proxy
// may add to it; which part is true depends on the proxies, and only the
// operator knows them. Reading the header without a list of proxies lets any
// client use a new address, and a new limit, with each request, or spend
// another client's limit. Not reading it behind a proxy puts all clients into
// one limit. So the list is an argument, and without it the connecting peer is
// the client.
//
// The rules, in the order in which they are applied:
//
//   - The peer decides. If it is not trusted it is the client, and no header
//     matters.
//   - All lines of exactly one header are read from right to left. Each
//     trusted address vouches for the one to its left; the first that is not
//     trusted is the client. If all are trusted the left-most is the client.
//   - If an address is unreadable, the key is "~hop:" and the key of the peer.
//     0.0.0.0 and :: are unreadable, and so are more than 64 addresses, and
//     one above 128 bytes.
//   - IPv4-mapped IPv6 is IPv4, zones are dropped. Trust is checked then.
//   - IPv4 inside IPv6 (NAT64, SIIT, 6to4; IPConfig.NAT64 adds your own
//     prefixes) becomes the IPv4 address, any other IPv6 address its /64.
//
// One subscriber may have a /56 or a /48 of IPv6, 256 or 65 536 keys, and a provider a
// /32. Additional limits on these prefixes, in one decision and the widest first,
// bound the spending of the holder of a prefix, and its number of places in a table of
// keys, by the limit of that prefix; for other clients nothing changes:
//
//	httpmw.Limits([]httpmw.Policy{
//		{Name: "site", Limiter: perSite, Key: algo.Must(keyfunc.IPConfig{IPv4Bits: 24, IPv6Bits: 48}.HTTP())},
//		{Name: "address", Limiter: perAddress, Key: keyfunc.ClientIP()},
//	})
//
// Prefixes do not widen by themselves under a flood: the neighbors of an attacker
// would then share one key with it, and their own counts would be lost.
//
// Trust the addresses of your own proxies, not the network they are in if
// clients are in it too. A content delivery network whose published addresses
// you trust vouches for all its customers: have it send a secret as well, or
// use its private link.
//
// # Before going live
//
// From outside, send a request with a forged header:
//
//	curl -H 'X-Forwarded-For: 192.0.2.66' https://example.com/
//
// and look at the key. It must be the address that the request was sent from.
//
//	192.0.2.66               too much is trusted, or a count of hops is too high: fix this first
//	the address of a proxy   this proxy is not in the list, or the count is too low
//	~hop:...                 a proxy writes something other than addresses into the header
//
// Then send the same request around the proxies, to the server's own address:
// the forged address must not appear there either. Repeat all of it when the
// proxies change.
//
// Two mistakes are logged once each through log/slog, with an attribute code:
//
//	keyfunc.forwarded_untrusted   a forwarding header was ignored because no proxy is trusted
//	keyfunc.trusts_all            IPConfig.TrustAll without Hops: clients can choose their keys
//
// # Keys
//
// Keys are for limiters and are not secret, except as [Secret] says. An
// identity, an address, a method and a route are keys unchanged: "acme/alice",
// "203.0.113.7", "/package.Service/Method", "GET /items/{id}".
//
// A client that chooses its name must not choose the key of an address with it.
// So an identity that is written like an address, a prefix, a SPIFFE ID, or a
// route or method ("/..." and "METHOD .../...") is tagged, "~value:203.0.113.7",
// and one that is longer than 128 bytes or not printable is hashed, "~value#" and
// 32 hexadecimal digits. [Identity] gives the key of an identity for code
// that resets, bans or configures one, and [JoinKeys] the key of several; the name of a host or
// a service looks like any name.
//
// Names of this package begin with '~': "~unmatched", "~unix", "~hop:",
// "~route:", "~value:", "~value#", "~secret:", "~uri:", "~dns:", "~email:", "~ip:",
// the last four also with '#', and "~join". The adapters add "~missing", for
// requests without a key. An identity that begins with '~' is tagged too.
//
// Two headers with the same value give the same key, and so do a header and a
// [Host] or a service of that name. To keep them apart in one limiter, join
// each with a constant of its own. [Hash] identifies keys in logs.
//
// # Requests without a key
//
// A missing identity is [ErrNoKey], and the middleware decides how the request
// is limited. A client can omit any header, so such a request must not be
// unlimited.
//
// # When not to use this package
//
//   - Access control or audit: a key selects a limit, and many clients share
//     one where their identity is in doubt.
//   - The payload of tokens: no function reads a JWT, because an unverified
//     token contains only claims of the client; verify it and use [Context].
//   - Locating people: behind a carrier's NAT thousands share one IPv4 address,
//     so limits by address must leave room for them.
//
// Key functions are safe for concurrent use, never read the request body, never
// panic on a request, and read a bounded part of it. Constructors without an
// error result panic on a nil argument or one out of range, so that a mistake
// appears at startup.
package keyfunc
