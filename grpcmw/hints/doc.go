// Package hints carries the class of a call from service to service, in the metadata
// "priority" in the form of RFC 9218.
//
// Trust only known callers: a client that may choose its class chooses the highest.
package hints
