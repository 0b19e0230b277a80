// Package keyfunc answers the question a rate limiter starts from: whose
// request is this? Each function here makes an [HTTP] or an [RPC], which turns
// a request into a key; requests with equal keys share a limit.
//
// # Which constructor
//
//	deployment                                        key function
//	clients connect to this server directly           ClientIP()                      PeerIP()
//	behind proxies whose addresses are known          ClientIP(prefixes...)           RPCClientIP(prefixes...)
//	the same, and they write another header           ClientIPHeader(name, ...)       IPConfig.RPC
//	the same, and they write RFC 7239                 Forwarded(prefixes...)          IPConfig.RPC
//	behind n proxies whose addresses change           TrustedHops(n)                  IPConfig.RPC
//	behind a proxy on a Unix socket                   IPConfig{TrustUnix: true}       IPConfig.RPC
//	behind authentication                             Context(get)                    RPCContext(get)
//	API keys, before they are checked                 Secret(header, pepper)
//	attempts to log in, per account                   BasicUser()
//	mutual TLS                                        ClientCert()                    TLSIdentity()
//	a header set by a gateway                         Header(name)                    Metadata(name)
//	per route                                         Route(), or Pattern(mux)        FullMethod(), Service()
//	per virtual host                                  Host(names...)
//	several of these together                         Join(...)                       RPCJoin(...)
//	one limit for everybody                           Global()                        RPCGlobal()
//
// # The address of a client
//
// There is no safe default. X-Forwarded-For is text that the client starts and
// each proxy may add to; which part of it is true depends on which proxies are
// there, and only the operator knows that. Reading it without a list of
// proxies lets any client take a new address, and a new limit, with each
// request, or use up the limit of somebody else. Not reading it behind a proxy
// puts all clients into one limit. So the list is an argument, and without it
// the connecting peer is the client.
//
// The rules, in the order in which they are applied:
//
//   - The peer decides. If it is not trusted it is the client, and no header
//     matters.
//   - Of exactly one header, all lines are read from right to left. Each hop
//     that is trusted vouches for the one to its left; the first that is not
//     is the client. If all are trusted it is the left-most.
//   - An unreadable hop ends the walk: the key is "~hop:" and the key of the
//     peer. So are 0.0.0.0 and ::, more than 64 hops, and hops above 128 bytes.
//   - IPv4-mapped IPv6 is IPv4, zones are dropped. Trust is checked then.
//   - NAT64 (64:ff9b::/96, RFC 6052) becomes the IPv4 address inside, any
//     other IPv6 address its /64.
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
// and look at the key. It has to be the address the request was sent from.
// 192.0.2.66 means that too much is trusted, or a count of hops is too high:
// mend it before anything else. The address of a proxy means that this proxy
// is not in the list, or that the count is too low. A key that begins with
// "~hop:" means that a proxy writes something else than addresses into the
// header. Then try the same around the proxies, at the server's own address:
// the forged one must not appear there either. Repeat all of it when the
// proxies change.
//
// Two mistakes are logged once each through log/slog, with an attribute code:
//
//	keyfunc.forwarded_untrusted   a forwarding header has come, and nobody is trusted
//	keyfunc.trusts_all            every peer and every hop is trusted
//
// # Keys
//
// Keys are for limiters and are not secret, except as [Secret] says. An
// address, a method and a route stand as they are. Names of this package begin
// with '~': "~global", "~unmatched", "~hop:", "~value:", "~value#", "~secret:",
// "~uri:", "~dns:", "~email:", "~ip:", the last four also with '#', and
// "~join". The adapters add "~missing", for requests without a key. A value from
// outside that begins with '~', or could be mistaken for
// an address, a route or a method, is written "~value:" and the value. So a
// client that chooses its name cannot choose the key of an address, or one of
// these names. It can choose the name of a host or a service, which look like
// any name. '#' stands before the hash of a value that is too long or not
// printable.
//
// Two headers with the same value give the same key, and so do a header and a
// [Host] or a [Service] of that name. Where one limiter is to tell them apart,
// join each with a constant of its own. [Hash] tells keys apart in logs.
//
// # Requests without a key
//
// An identity that is not there is [ErrNoKey], and the middleware decides what
// happens. A client can leave out any header it likes, so what happens must
// not be that the request is unlimited.
//
// # When not to use this package
//
// Not for access control or audit: a key says which limit to count against,
// and shares one among many clients where it is in doubt. Not for the payload
// of tokens: there is no function that reads a JWT, because what is not
// verified is the client's own word; verify it and use [Context]. Not for
// locating people: behind a carrier's NAT, thousands have one IPv4 address,
// so limits by address must leave room for them.
//
// Functions made here are safe for concurrent use, never read the request
// body, never panic on a request, and look at a bounded part of it.
// Constructors panic on a nil argument or one out of range, where they have no
// error result, so that a mistake shows at the start.
package keyfunc
