// Package warning logs problems of the configuration, each at most once in the
// life of the process.
package warning

import (
	"log"
	"sync/atomic"
)

// Once is one problem. It is logged with package log, which slog.SetDefault
// redirects; package log/slog would make every program larger. The code stays
// the same in all versions. Nothing in a line comes from a request.
type Once struct {
	Code, Message string
	logged        atomic.Bool
}

// Pending reports whether the problem has not been logged yet.
func (w *Once) Pending() bool { return !w.logged.Load() }

// Log logs the problem. detail has the form "name=value", or is empty.
func (w *Once) Log(detail string) {
	if w.Pending() && w.logged.CompareAndSwap(false, true) {
		if detail != "" {
			detail = " " + detail
		}
		log.Print(w.Message + ": code=" + w.Code + detail)
	}
}

// Reset makes the problem be logged again. It is for tests.
func (w *Once) Reset() { w.logged.Store(false) }
