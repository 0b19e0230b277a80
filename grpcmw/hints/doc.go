// Package hints carries the class of a call from service to service, in the metadata
// "priority" in the form of RFC 9218.
//
// Do not believe callers that you do not know: a client that may choose its class chooses the
// highest.
package hints
