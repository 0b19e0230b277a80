// Package learn learns the rate that a third-party API allows from its answers.
//
//	limit := learn.New(algo.PerSecond(10)) // a guess; it rises and falls from there
//	client := &http.Client{Transport: client.Transport(nil, limit, keyfunc.Global())}
//
// The limit rises while the server accepts, falls when it denies, and never starts a call earlier
// than the server asks. After a wait, calls resume at the learned rate and not in a burst. If the
// server states its rate, the limit uses it and does not search for more; a statement that a denial
// contradicts is only an upper bound for a while.
//
// A search for more costs a denial and the wait that follows. The limit repeats it every 10 s to 60
// s, less often after long waits and many denials, so that in the long run denials are about 1 % of
// the calls and waits about 5 % of the time. A server that asks for one or two seconds where
// milliseconds would do costs 5 % to 10 % of a bucket: searches that are S apart, each with a wait
// W, use at most S/(S+W) of the time. It finds a limit that is ten times as high within about a
// minute.
//
// # When not to use it
//
// Configure a documented limit: a token bucket slightly below it loses nothing and is never denied.
// Processes that share a credential learn one rate each; together they keep the server's limit,
// with 1 % to 3 % of denials, but no fair share of it. For the capacity of your own service see
// package adaptive.
//
// The method is additive-multiplicative, as in TCP (RFC 5681), with two changes: the rate falls to
// what the server has accepted in the last seconds, not by a fixed part, and rises only after a
// pause that grows with the cost of the last search. No answer more than doubles it.
package learn
