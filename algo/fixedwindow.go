package algo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/interleave"
)

// FixedWindow admits a quota in each window of time, and refills all of it at
// the window's end. It is the limit to take where people count in calendar
// units: so many calls a day, so many messages a month of 30 days.
//
// The rate's period is the length of the windows. They follow one another from
// the instant at which the limiter was made; see [Offset], [AlignedTo] and
// [Spread].
//
// Bound: at most the quota in each of these windows, and so less than twice
// the quota in any window of the same length that lies across an edge,
// whatever the clock readings and however many goroutines. A denial does not
// count. What is given back while the window lasts can be spent again in it;
// later it cannot.
//
// State is one word a key, swapped without a lock. A decision allocates
// nothing.
//
// Do not use it to protect something from peaks: a caller may spend two quotas
// within moments around an edge, and all callers may do so at the same edge.
// A [TokenBucket] spreads them, a [SlidingWindow] with [Cells] or [Strict]
// holds the quota in any window.
type FixedWindow struct {
	words   words
	made    time.Time
	spec    Spec
	limit   atomic.Pointer[fixed]
	setting sync.Mutex   // serialises SetRate
	changed atomic.Int64 // when the rate was last changed
	since   atomic.Int64 // when its period was
}

// NewFixedWindow makes a fixed window of r.Count units in each r.Period, with
// the options [Offset], [AlignedTo], [Spread], [MaxKeys] and [OnFull]. The
// error names the field and the value that no limit can keep.
func NewFixedWindow(r Rate, opts ...Option) (*FixedWindow, error) {
	return construct(&fixedWindow, Spec{Rate: r}, opts, newFixedWindow)
}

var fixedWindow = kind{"fixed-window", "fixed window", []string{"Offset", "AlignedTo", "Spread", "MaxKeys", "OnFull"}}

func newFixedWindow(s Spec) (*FixedWindow, error) {
	w := &FixedWindow{made: time.Now(), spec: s}
	// Instants are counted from one longest window ago, so that the window that
	// holds the present never begins below 0.
	w.words.clock = clock{w.made.Add(-maxSpan)}
	w.words.maxKeys, w.words.onFull = s.maxKeys(), s.OnFull
	if err := w.SetSpec(s); err != nil {
		return nil, err
	}
	return w, nil
}

// SetRate changes quota and period while the limiter runs. What share of its
// window a key has spent stays spent: half of a quota of 10 is half of a quota
// of 20. When the period changes, what reaches beyond the end of the next
// window is forgiven.
func (w *FixedWindow) SetRate(r Rate) error {
	return w.set(func(s Spec) (Spec, error) { s.Rate = r; return s, nil })
}

// SetSpec changes quota and period while the limiter runs; see [Spec.Apply].
func (w *FixedWindow) SetSpec(s Spec) error {
	return w.set(func(was Spec) (Spec, error) { return was.replace(&fixedWindow, s) })
}

func (w *FixedWindow) set(change func(Spec) (Spec, error)) error {
	w.setting.Lock()
	defer w.setting.Unlock()
	s, err := change(w.spec)
	if err != nil {
		return err
	}
	reference, err := windowReference(s, w.made)
	if err != nil {
		return fmt.Errorf("algo: %s: %w", fixedWindow.title, err)
	}
	f, err := newFixed(s.Rate, w.instant(s, reference), s.Spread)
	if err != nil {
		return fmt.Errorf("algo: %s: %w", fixedWindow.title, err)
	}
	w.spec = s
	was := w.limit.Swap(f)
	// After the swap: what is charged at a later instant is charged under f.
	if now := w.words.clock.now(); was != nil {
		w.changed.Store(now)
		if was.window != f.window {
			w.since.Store(now)
		}
	}
	return nil
}

// instant is where the edge at d after the making, moved by the offset, lies
// within the period.
func (w *FixedWindow) instant(s Spec, d time.Duration) int64 {
	r := s.Rate
	if r.Period <= 0 {
		return 0 // newFixed will say so
	}
	return toTicks((d%r.Period + s.Offset%r.Period + maxSpan%r.Period) % r.Period)
}

// Acquire charges n units to key if they fit into the current window; see
// [Limiter]. It ignores ctx, because it never waits. A negative n is
// [ErrCost].
func (w *FixedWindow) Acquire(_ context.Context, key string, n int64) (lease Lease, err error) {
	if n < 0 {
		return lease, costError(n)
	}
	w.acquireAt(&lease, w.words.clock.now(), key, n)
	return lease, nil
}

// Allow is the short form of Acquire for callers that want only the verdict. A
// negative n is denied.
func (w *FixedWindow) Allow(key string, n int64) bool {
	return n >= 0 && w.allowAt(w.words.clock.now(), key, n)
}

func (w *FixedWindow) allowAt(now int64, key string, n int64) bool {
	_, _, _, _, over, full := w.spend(key, now, n)
	if full {
		return w.words.onFull == AllowNew
	}
	return over <= 0 || n == 0
}

func (w *FixedWindow) acquireAt(lease *Lease, now int64, key string, n int64) {
	f, now, begin, next, over, full := w.spend(key, now, n)
	if full {
		lease.Decision = w.whenFull(f, now, key)
		return
	}
	f.explain(&lease.Decision, next, begin, now, n, over)
	if !lease.Allowed || n == 0 {
		return
	}
	lease.releaser = w
	lease.handle.Key, lease.handle.N = key, n
	lease.handle.At = now
	lease.handle.State = [3]int64{begin, f.share.by, n}
}

// spend charges n units to key. It returns the limit and the instant that it
// decided on, the beginning of that window, the word afterwards, the overshoot
// as fixed.charge has it, and whether the key is new and found no room.
func (w *FixedWindow) spend(key string, at, n int64) (f *fixed, now, begin, next, over int64, noRoom bool) {
	now = at
	c := w.words.cell(key)
	for again := false; ; {
		word := c.at.word.Load()
		if word == retired || c.at.id.Load() != c.id {
			if c, word = c.reload(); c.absent() {
				now = w.words.clock.now()
			}
		}
		// After the clock: a charge that is later than a change is made under it.
		f = w.limit.Load()
		begin = f.begin(now, c.id)
		if word-begin > f.window.by && !again {
			now, again = w.catchUp(c, f, word), true
			continue
		}
		next, over = f.charge(f.heal(word, begin), begin, n)
		if over > 0 || n == 0 {
			return f, now, begin, next, over, false
		}
		interleave.Point()
		if s := c.swap(word, next, f.horizon(now)); s != lost {
			return f, now, begin, next, over, s == full
		}
	}
}

// catchUp returns a new reading of the clock where a word lies beyond the
// window of the old one: that reading was late, or the key is in debt, or the
// word is left over from a longer window. The last is cut.
func (w *FixedWindow) catchUp(c cell, f *fixed, word int64) (now int64) {
	unchanged := w.limit.Load() == f
	now = w.words.clock.now()
	if begin := f.begin(now, c.id); unchanged && !f.believable(word, begin) {
		c.stripe.void(now)
		c.swap(word, f.heal(word, begin), f.horizon(now))
	}
	return now
}

// whenFull answers a new key that found no room and must not share.
func (w *FixedWindow) whenFull(f *fixed, now int64, key string) Decision {
	t := w.words.keys.Load()
	return crowded(w.words.onFull, f.quota, f.dies(t.soonest(t.hash(key)), now)-now)
}

// Len counts the keys that have spent something in their current window. It
// walks the table.
func (w *FixedWindow) Len() (n int) {
	t := w.words.keys.Load()
	if t == nil {
		return 0
	}
	f, now := w.limit.Load(), w.words.clock.now()
	for i := range t.slots {
		if s := &t.slots[i]; s.word.Load() > f.begin(now, s.id.Load()) {
			n++
		}
	}
	return n
}

// Overflowed counts the decisions on new keys that found the table full. It
// growing means that MaxKeys is too small, or that somebody makes keys up.
func (w *FixedWindow) Overflowed() uint64 { return w.words.spilled() }

// Describe says what callers are promised: the quota in each window.
func (w *FixedWindow) Describe() (Description, bool) {
	f := w.limit.Load()
	return Description{Quota: f.quota, Window: toDuration(f.window.by)}, true
}

// Offset moves the edges of a [FixedWindow] by d, 0 or more and taken modulo
// the period. Without [AlignedTo] the edges are at d, d + period, ... after
// the limiter was made; several limiters, or instances of a service, that get
// different offsets do not refill at the same instant.
func Offset(d time.Duration) Option {
	return Option{"Offset", func(s *Spec) { s.Offset = d }}
}

// AlignedTo puts an edge of a [FixedWindow] at t, past or future, and the
// others whole periods away from it: with the last midnight of a location and
// a period of 24 hours the windows are that location's days. t must be within
// 291 years.
//
// Windows are lengths of time, not dates. When daylight saving begins or ends
// the location's midnight moves by an hour and the windows do not; neither do
// they follow when the system's clock is set. Where that matters make a new
// limiter at the change.
func AlignedTo(t time.Time) Option {
	return Option{"AlignedTo", func(s *Spec) { s.AlignedTo = t.Round(0).UTC() }}
}

// Spread gives each key of a [FixedWindow] edges of its own, at one of 1024
// places in the period that a secret hash picks. Then the keys do not all
// refill at once, and callers that wait for the edge do not all come back at
// once. It cannot be combined with [AlignedTo]. The empty key stays where it
// is.
func Spread() Option {
	return Option{"Spread", func(s *Spec) { s.Spread = true }}
}

// windowReference is an edge of the windows of a limiter made at made, as time
// since then, but for the offset.
func windowReference(s Spec, made time.Time) (time.Duration, error) {
	switch {
	case s.Offset < 0:
		return 0, fmt.Errorf("offset is %v, want 0 or more", s.Offset)
	case s.AlignedTo.IsZero():
		return 0, nil
	case s.Spread:
		return 0, fmt.Errorf("aligned to is %v: it cannot be combined with Spread", s.AlignedTo)
	}
	d := s.AlignedTo.Round(0).Sub(made.Round(0)) // by the wall clock
	if most := Forever - 365*24*time.Hour; d > most || d < -most {
		return 0, fmt.Errorf("aligned to is %v: more than 291 years away", s.AlignedTo)
	}
	return d, nil
}
