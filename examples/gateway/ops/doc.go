// Package ops is the second address: what operators and their machines ask of
// a process that answers clients on the first one. It must not be reachable by
// clients.
package ops
