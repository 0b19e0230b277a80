// Package warning logs problems of the configuration, each at most once in the
// life of the process, or once in a while as long as it goes on.
package warning

import (
	"log"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Line is the log line of one problem: what is wrong, and what to do. Its code is
// the same in all versions.
type Line struct {
	Code, Message, Do string
	Every             time.Duration // as often as that while the problem goes on; 0: once
}

// Print writes the line, with attrs as alternating names and values, to the function of [To],
// otherwise with package log, because package log/slog would make every program larger.
func (l *Line) Print(attrs ...string) {
	for i, s := range attrs {
		attrs[i] = Clip(s, Longest)
	}
	if write := to.Load(); write != nil {
		(*write)(l, attrs)
		return
	}
	var text strings.Builder
	text.WriteString(l.Message + ": " + l.Do + ": code=" + l.Code)
	for a := range slices.Chunk(attrs, 2) {
		text.WriteString(" " + a[0] + "=" + quoted(a[1]))
	}
	log.Print(text.String())
}

// Longest bounds the bytes of a text in a line that may come from a client or a server.
const Longest = 256

// Clip cuts s to most bytes.
func Clip(s string, most int) string {
	if len(s) > most {
		s = s[:most] + "..."
	}
	return s
}

// quoted puts quotes around a value that could be taken for something else.
func quoted(s string) string {
	if q := strconv.Quote(s); len(q) != len(s)+2 || s == "" || strings.ContainsAny(s, " =") {
		return q
	}
	return s
}

var to atomic.Pointer[func(l *Line, attrs []string)]

// To sends all later lines to write; nil: to package log.
func To(write *func(l *Line, attrs []string)) { to.Store(write) }

// Once is a problem that is logged once, or every Line.Every.
type Once struct {
	Line
	Pause
}

// Pending reports whether the problem has not been logged yet.
func (w *Once) Pending() bool { return w.end.Load() == 0 }

// Log logs the problem.
func (w *Once) Log(attrs ...string) {
	if w.Over(w.Every) {
		w.Print(attrs...)
	}
}

// Pause is the time until a problem that goes on is logged again.
type Pause struct{ end atomic.Int64 } // nanoseconds since 1970; 0: there is none

// Over reports whether there is no pause, and then begins one of length d; 0: without end.
func (p *Pause) Over(d time.Duration) bool {
	end := p.end.Load()
	if end != 0 && d == 0 {
		return false
	}
	now := time.Now().UnixNano()
	goesOn := now < end && end-now <= int64(d) // otherwise the clock was set back
	return !goesOn && p.end.CompareAndSwap(end, now+int64(d))
}

// Reset ends the pause.
func (p *Pause) Reset() { p.end.Store(0) }

// Share detects whether requests of a kind that should be rare are many.
type Share struct{ odd atomic.Int64 }

// Many is how many requests indicate a mistake of the service, because clients may cause single ones.
const Many = 100

// Odd counts a request of the kind, and reports whether at least many are not offset by Usual. Then
// it starts again at 0.
func (s *Share) Odd(many int64) bool { return s.odd.Add(1) >= many && s.odd.Swap(0) >= many }

// Usual counts another request, which offsets n of the kind.
func (s *Share) Usual(n int64) {
	if odd := s.odd.Load(); odd > 0 {
		s.odd.CompareAndSwap(odd, max(odd-n, 0)) // lost to another request, it counts for nothing
	}
}

// NameLimiter names a limiter in its warnings by a policy that it is part of. Package algo sets it.
var NameLimiter = func(limiter any, policy string) {}
