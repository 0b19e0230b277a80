// Command bench runs sluice and its peers on the same work, in one process, in
// turns, and prints the results, first those in which a peer is ahead:
//
//	make bench                    # about four minutes, on a quiet machine
//	cd bench && go run . -quick   # about a minute, for a first look
//	cd bench && go run . -quick -only 'inflight|adaptive'
//
// It starts a redis-server of its own.
//
// There are two parts. The measurements (work*.go) time each library on the
// same decisions, round by round, each round beside the floor: the cost that
// every limiter has. The ratios are within a round, so that a machine which is
// slow for a while is slow for all. The attacks (attacks*.go) attack each
// library as an adversary or an accident would, and count the admissions.
//
// It is a module of its own, so that users of sluice do not download its
// peers. Their versions are pinned in go.mod and printed with the results.
//
// Nanoseconds do not carry over to another machine: most of a decision
// is reading the clock, and that differs tenfold between machines.
package main
