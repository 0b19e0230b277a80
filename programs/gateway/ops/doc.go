// Package ops is the second address, for operators and their machines; clients
// use the first one. It must not be reachable by clients.
package ops
