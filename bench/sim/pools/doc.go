// Package pools simulates services whose bottleneck is behind them: a pool of connections, a
// lock, another service. It runs in virtual time, with the limiters of package adaptive
// unchanged, and with failsafe-go's in a testing/synctest bubble.
//
// A request waits for the processor, passes the limiter, and then waits for a connection, in
// order of arrival. As in a real server:
//
//   - net/http's own reader is runnable whenever a request is decided;
//   - clients give up after their patience and are gone; handlers that obey their context then
//     return at once, others do the work for nobody;
//   - the lease of a client that is gone is released as httpmw does.
//
// Limits of the model: the processor is one queue in order of arrival, a connection that is
// given up is free at once, and there is no network.
package pools
