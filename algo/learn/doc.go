// Package learn learns the rate limit of another service's API from its answers.
//
//	limit := learn.New(algo.PerSecond(10)) // a guess; it rises and falls from there
//	client := &http.Client{Transport: client.Transport(nil, limit, keyfunc.Global())}
//
// The limit rises while the server accepts, falls when it denies, and never lets a call start
// earlier than the server has asked for. After a wait, calls resume at the learned rate and not
// in a burst. Where the server states its rate, that is used, and no call is spent on a search
// for more; a statement that a denial contradicts is only an upper bound for a while.
//
// A search for more costs a denial and the wait that follows. It is repeated each 10 s to 60 s:
// the rarer, the longer the waits and the more calls were denied, so that in the long run
// denials are about 1 % of the calls and waits about 5 % of the time. So a server that asks for
// one or two seconds where milliseconds suffice costs 5 % to 10 % of its limit: searches S
// apart, each with a wait W, use at most S/(S+W) of the time. A tenfold limit is found within
// about a minute.
//
// # When not to use it
//
// If the limit is documented, configure it: a token bucket a little below it loses nothing
// and is never denied. Processes that share a credential learn one rate each; together they keep
// the server's limit, with 1 % to 3 % of denials, but no fair share of it. For the capacity of
// your own service see package adaptive.
//
// The method is additive-multiplicative, as in TCP (RFC 5681), with two changes: the rate falls
// to the accepted rate of the last seconds and not by a fixed part, and it rises only after a
// pause that grows with the cost of the last search. No answer more than doubles it.
package learn
