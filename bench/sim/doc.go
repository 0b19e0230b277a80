// Package sim simulates services under load in virtual time, to compare concurrency
// limits and the strategies that tune them.
//
// One event loop in one goroutine runs everything: clients, the server and the
// gate in front of it. The limiters and strategies under test are those in package
// adaptive, unchanged, on a simulated machine ([machine.Machine]). Nothing sleeps,
// and all chance comes from the run's seed.
//
// # Models
//
//   - [Sharing]: processor sharing, every request gets an equal part of the
//     cores at once. It may lose speed with each runnable request ([Sharing.Collapse]),
//     and any model may have a CFS quota, pauses and a neighbour ([Host]).
//   - [Workers]: first in, first out, each request runs to its end.
//   - [Remote]: as Workers, but in another machine: the service's own processor
//     idles and nothing is runnable.
//   - [GoScheduler]: a Go server, where requests queue as connections and
//     goroutines in front of the gate.
//
// # Limits of the models
//
// The models have no memory, garbage collector, locks or network. Queues of package
// adaptive (FIFO, CoDel) block a goroutine and cannot run here.
package sim
