// Package warning logs problems of the configuration, each at most once in the
// life of the process, or once a minute while it goes on.
package warning

import (
	"log"
	"sync/atomic"
	"time"
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
		print(w.Code, w.Message, detail)
	}
}

func print(code, message, detail string) {
	if detail != "" {
		detail = " " + detail
	}
	log.Print(message + ": code=" + code + detail)
}

// Minutely is a problem that goes on. It is logged as [Once] is, but again after
// a minute.
type Minutely struct {
	next atomic.Int64 // nanoseconds since 1970
}

// Log logs the problem unless it was logged within the last minute.
func (w *Minutely) Log(code, message string, detail func() string) {
	now := time.Now().UnixNano()
	if next := w.next.Load(); now >= next && w.next.CompareAndSwap(next, now+int64(time.Minute)) {
		print(code, message, detail())
	}
}

// Reset makes the problem be logged again. It is for tests.
func (w *Once) Reset() { w.logged.Store(false) }
