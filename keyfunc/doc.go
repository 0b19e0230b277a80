// Package keyfunc has the key functions for HTTP: each constructor makes an
// [HTTP], which returns the key of a request. Requests with equal keys share a
// limit. Package rpckey has the key functions for gRPC; a client has the same key
// over both.
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
//	no limit for some networks (WithSkip)        IPConfig.Within(prefixes...)    Within(config, prefixes...)
//
// # The address of a client
//
// There is no safe default: the client starts X-Forwarded-For, each proxy may add to it, and
// only the operator knows the proxies. Without a list of them the connecting peer is the
// client. The guide docs/guides/proxies.md names what to trust, and what to test before going live.
//
//   - A peer that is not trusted is the client, and no header matters.
//   - All lines of exactly one header are read from right to left. The first address that is
//     not trusted is the client; if all are trusted, the left-most is.
//   - If an address is unreadable, the key is "~hop:" and the key of the peer. 0.0.0.0 and ::
//     are unreadable, and so are more than 64 addresses, and one above 128 bytes.
//   - IPv4-mapped IPv6 counts as IPv4, and zones are dropped, before trust is checked.
//   - IPv4 inside IPv6 (NAT64, SIIT, 6to4; IPConfig.NAT64 adds your own prefixes) becomes the
//     IPv4 address, any other IPv6 address its /64.
//
// Four mistakes are logged once each, the first three when they concern most requests:
// keyfunc.forwarded_untrusted (a forwarding header is ignored because its sender is no trusted
// proxy; without any it needs one request), keyfunc.forwarded_elsewhere (proxies send another
// header), keyfunc.forwarded_unreadable (they send no address, or Hops is too large), and
// keyfunc.trusts_all (IPConfig.TrustAll without Hops: clients can choose their keys).
//
// # Keys
//
// An identity, an address, a method and a route are keys unchanged: "acme/alice",
// "203.0.113.7", "/package.Service/Method", "GET /items/{id}". A client that chooses its name must
// not choose one of these with it: an identity that is written like another key, or begins with
// '~', is tagged, "~value:203.0.113.7", and one that is longer than 128 bytes or not printable is
// hashed, "~value#" and 32 hexadecimal digits. The other tags are "~missing" (by the adapters),
// "~unmatched", "~unix", "~hop:", "~route:", "~secret:", "~join", and "~uri:", "~dns:", "~email:"
// and "~ip:", which have a form with '#' too. [Identity] and [JoinKeys] make the same keys for code
// that resets or bans them, [Hash] identifies keys in logs. Keys are not secret, except as
// [Secret] says.
//
// A header, a host and a service of gRPC with the same value give the same key, also as two limits of one
// name in a store: to keep them apart in one limiter, Join each, alone or with a constant of its own.
//
// A missing identity is [ErrNoKey], and the middleware decides. A client can omit any header, so
// the middleware must still limit such a request.
//
// # When not to use it
//
// A key is no access control: clients whose identity is in doubt share one, and behind a
// carrier's NAT thousands share an address. No function reads a JWT: verify it and use [Context].
//
// Key functions are safe for concurrent use, never read the request body, never panic on a
// request, and read a bounded part of it. Constructors without an error result panic on a nil
// argument or one out of range.
package keyfunc
