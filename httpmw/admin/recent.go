package admin

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo/telemetry"
)

// recent keeps the last decisions: those that let a request pass apart from all
// others, so that the many do not push out the few. Under load it keeps some of
// them, evenly over time, so that it costs next to nothing.
type recent struct {
	passed, refused lastOnes
}

const (
	kept       = 48  // decisions, and so many at once after a pause
	keptSecond = 24  // a second in the long run
	keptText   = 256 // bytes of a text that came from a client
)

func (r *recent) init() {
	r.passed.ring = make([]stored, 0, kept)
	r.refused.ring = make([]stored, 0, kept)
}

// note keeps a decision that was made at now, since the start of the page, and
// reports whether it did.
func (r *recent) note(e *telemetry.Event, k kind, now time.Duration) bool {
	if k == denied || k == blocked || k == failed {
		return r.refused.note(e, k, now)
	}
	return r.passed.note(e, k, now)
}

// all returns the decisions, the latest first.
func (r *recent) all() []stored {
	all := append(r.passed.all(), r.refused.all()...)
	slices.SortFunc(all, func(a, b stored) int {
		return cmp.Or(b.event.At.Compare(a.event.At), cmp.Compare(b.number, a.number))
	})
	return all
}

// stored is a decision in the list.
type stored struct {
	event  telemetry.Event
	kind   kind
	number uint64 // counts up, for each of the two
	err    string
}

type lastOnes struct {
	gate atomic.Int64 // when the budget is whole again, as GCRA counts it
	mu   sync.Mutex
	n    uint64
	ring []stored
}

func (l *lastOnes) note(e *telemetry.Event, k kind, now time.Duration) bool {
	if !l.open(now) {
		return false
	}
	t := stored{event: *e, kind: k}
	t.event.Method = clip(e.Method)
	if e.Err != nil {
		t.err, t.event.Err = clip(e.Err.Error()), nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.number = l.n
	if len(l.ring) < kept {
		l.ring = append(l.ring, t)
	} else {
		l.ring[l.n%kept] = t
	}
	l.n++
	return true
}

// open reports whether there is budget for one more.
func (l *lastOnes) open(now time.Duration) bool {
	const each, all = time.Second / keptSecond, kept * time.Second / keptSecond
	for {
		was := l.gate.Load()
		next := max(was, int64(now)) + int64(each)
		if next > int64(now+all) {
			return false
		}
		if l.gate.CompareAndSwap(was, next) {
			return true
		}
	}
}

func (l *lastOnes) all() []stored {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ring)
}

// clip cuts a long text, so that it keeps no more memory than it shows.
func clip(s string) string {
	if len(s) <= keptText {
		return s
	}
	return string(append([]byte(s[:keptText]), "…"...))
}
