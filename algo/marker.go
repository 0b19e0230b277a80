package algo

import (
	"context"
	"fmt"
	"time"
)

// Color is what a [Marker] makes of a request. The order is that of the
// traffic light: greater is redder.
type Color uint8

// The colors. A typical use: serve Green, serve Yellow degraded or with a low
// priority, deny Red.
const (
	// Green: within the committed rate and burst.
	Green Color = iota
	// Yellow: beyond that, within the excess or peak.
	Yellow
	// Red: beyond both.
	Red
)

// String returns the color in lower case, for logs.
func (c Color) String() string { return nameOf(int(c), "green", "yellow", "red") }

// Marker colors requests by what their key has spent, and decides nothing.
//
// in is the color that the request came with, from a marker that it passed
// before; the result is never greener. Pass Green for requests that come
// uncolored: that is the color-blind mode of the RFCs. Anything beyond Red
// counts as Red.
//
// n is the cost in units (the RFCs count bytes); n = 0 changes nothing and
// tells the color of an empty request. A negative n is [ErrCost] and Red. What
// is marked Red is charged to nobody.
//
// The markers of this package have the methods Len() int and Reset(key string)
// beside Mark. Their buckets start full and are counted exactly, fractions of
// a unit included; a clock reading that is not after the last one fills
// nothing. A call allocates nothing. They are safe for concurrent use.
type Marker interface {
	Mark(ctx context.Context, key string, n int64, in Color) (Color, error)
}

// NewSRTCM makes a single rate three color marker, RFC 2697, with the options
// [MaxKeys] and [OnFull].
//
// One rate, cir, fills the committed bucket of cbs units, and what that spills
// fills the excess bucket of ebs units. Green takes from the first, Yellow from
// the second. It forgives bursts after idle times, and only their length
// matters.
//
// Bound: in any window of length w at most cbs + cir*w units are Green, and
// cbs + ebs + cir*w not Red.
//
// The error names the field and the value: cbs and ebs may each be 0, not both.
func NewSRTCM(cir Rate, cbs, ebs int64, opts ...Option) (Marker, error) {
	return newMarker("srTCM", opts, func() (marking, error) {
		if cbs == 0 && ebs == 0 {
			return marking{}, fmt.Errorf("cbs and ebs are both 0, want one of them larger")
		}
		return twoBuckets(spilling, cir, cbs, cir, ebs, "cir", "ebs")
	})
}

// NewTRTCM makes a two rate three color marker, RFC 2698, with the options
// [MaxKeys] and [OnFull].
//
// The peak rate pir fills a bucket of pbs units that everything takes from;
// what does not fit there is Red. The committed rate cir fills a bucket of cbs
// units that Green takes from too. It enforces a peak rate.
//
// Bound: in any window of length w at most cbs + cir*w units are Green, and
// pbs + pir*w not Red.
//
// The error names the field and the value: cbs and pbs must be 1 or more, and
// pir no slower than cir.
func NewTRTCM(cir Rate, cbs int64, pir Rate, pbs int64, opts ...Option) (Marker, error) {
	return newMarker("trTCM", opts, func() (marking, error) {
		m, err := twoBuckets(peaking, cir, cbs, pir, pbs, "pir", "pbs")
		switch {
		case err != nil:
			return m, err
		case cbs == 0:
			return m, fmt.Errorf("cbs is 0, want 1 or more")
		case pbs == 0:
			return m, fmt.Errorf("pbs is 0, want 1 or more")
		case m.excess.slowerThan(m.committed):
			return m, fmt.Errorf("pir is %v, slower than cir, which is %v", pir, cir)
		}
		return m, nil
	})
}

// NewRFC4115 makes the two rate three color marker of RFC 4115, with the
// options [MaxKeys] and [OnFull].
//
// Its buckets are independent: cir fills cbs units for Green, eir fills ebs
// units for Yellow. Unlike with [NewTRTCM], what is Green takes nothing from the
// second bucket, so eir may be slower than cir.
//
// Bound: in any window of length w at most cbs + cir*w units are Green, and
// ebs + eir*w Yellow.
//
// The error names the field and the value: cbs and ebs may each be 0, not both.
func NewRFC4115(cir Rate, cbs int64, eir Rate, ebs int64, opts ...Option) (Marker, error) {
	return newMarker("RFC 4115", opts, func() (marking, error) {
		if cbs == 0 && ebs == 0 {
			return marking{}, fmt.Errorf("cbs and ebs are both 0, want one of them larger")
		}
		return twoBuckets(independent, cir, cbs, eir, ebs, "eir", "ebs")
	})
}

// marker applies a marking to the cells of a limiter. A marking counts
// nanoseconds, cells count ticks.
type marker struct {
	marking
	cells cells[marked]
}

// marked is what is kept for a key. (The meters apart: more than four fields do
// not stay in registers.)
type marked struct {
	meters
	resets int64 // and cuts: a charge before the last one cannot be given back
	until  int64 // ns; and weighs nothing from here on: resets may be forgotten
}

// void ends what earlier charges weigh, which is nothing from fullAt on anyway.
func (v *marked) void(fullAt int64) {
	v.resets++
	v.until = max(v.until, fullAt)
}

func newMarker(name string, opts []Option, build func() (marking, error)) (Marker, error) {
	s, err := (&kind{title: name, takes: []string{"MaxKeys", "OnFull"}}).configure(Spec{}, opts)
	if err != nil {
		return nil, err
	}
	m := new(marker)
	if m.marking, err = build(); err != nil {
		return nil, fmt.Errorf("algo: %s: %w", name, err)
	}
	m.cells.init(s)
	return m, nil
}

// lock finds the meters of key and locks them, with the instant to decide at in
// nanoseconds.
func (m *marker) lock(key string, now int64) (held[marked], int64) {
	h, at := m.cells.lock(key, now)
	return h, at >> tickShift
}

// unlock ends the work on h, whose meters are now s.
func (m *marker) unlock(h held[marked], s meters) {
	h.value.meters = s
	h.unlock(toTicks(time.Duration(max(m.fullAt(s), h.value.until))))
}

func (m *marker) now() int64 { return m.cells.clock.now() }

// Mark implements [Marker]. It ignores ctx, because it never waits.
func (m *marker) Mark(_ context.Context, key string, n int64, in Color) (Color, error) {
	if n < 0 {
		return Red, costError(n)
	}
	return m.markAt(m.now(), key, n, in), nil
}

func (m *marker) markAt(now int64, key string, n int64, in Color) Color {
	h, now := m.lock(key, now)
	if h.value == nil {
		if m.cells.onFull == AllowNew {
			return min(in, Red)
		}
		return Red
	}
	next, out := m.decide(h.value.meters, now, n, in)
	if out == Red || n == 0 {
		h.leave()
		return out
	}
	m.unlock(h, next)
	return out
}

// Reset fills the buckets of key. What was admitted before cannot be given
// back afterwards.
func (m *marker) Reset(key string) {
	h, now := m.lock(key, m.now())
	if h.value == nil {
		return
	}
	s := m.refill(h.value.meters, now)
	h.value.void(m.fullAt(s))
	m.unlock(h, meters{last: s.last})
}

// Len counts the keys whose buckets are not full, or were not when they were
// reset. It walks the table.
func (m *marker) Len() int { return m.cells.live(m.now()) }

// Overflowed counts the decisions on new keys that found the table full.
func (m *marker) Overflowed() uint64 { return m.cells.spilled() }
