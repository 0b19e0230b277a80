package algo

import (
	"context"
	"fmt"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// Color is the answer of a [Marker] to a request. The order follows a traffic
// light: greater is redder.
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

// Marker colors requests by the spending of their key, and decides nothing.
//
// in is the color that the request came with, from a marker that it passed
// before; the result is never greener. Pass Green for requests that come
// uncolored: that is the color-blind mode of the RFCs. Anything beyond Red
// counts as Red.
//
// n is the cost in units (the RFCs count bytes); n = 0 changes nothing and
// returns the color of an empty request. A negative n is [ErrCost] and Red. A
// Red request is not charged.
//
// The markers of this package have the methods Len() int and Reset(key string)
// beside Mark. Their buckets start full and are counted exactly, fractions of
// a unit included; a clock reading that is not after the last one fills
// nothing. A call allocates nothing. They are safe for concurrent use.
type Marker interface {
	Mark(ctx context.Context, key string, n int64, in Color) (Color, error)
}

// NewSRTCM makes a single rate three color marker, RFC 2697, with the options
// [MaxKeys] and [DenyNew].
//
// One rate, cir, fills the committed bucket of cbs units; its overflow fills
// the excess bucket of ebs units. Green takes from the first, Yellow from the
// second. It forgives bursts after idle times, and only their length matters.
//
// Bound: in any window of length w at most cbs + cir*w units are Green, and
// cbs + ebs + cir*w not Red.
//
// The error names the field and the value: cbs and ebs may each be 0, not both.
func NewSRTCM(cir Rate, cbs, ebs int64, opts ...Option) (*ThreeColorMarker, error) {
	m, err := decide.NewSRTCM(cir.local(), cbs, ebs)
	return newMarker("srTCM", m, err, opts)
}

// NewTRTCM makes a two rate three color marker, RFC 2698, with the options
// [MaxKeys] and [DenyNew].
//
// The peak rate pir fills a bucket of pbs units from which every request
// takes; a request that does not fit is Red. The committed rate cir fills a
// bucket of cbs units that Green takes from too. It enforces a peak rate.
//
// Bound: in any window of length w at most cbs + cir*w units are Green, and
// pbs + pir*w not Red.
//
// The error names the field and the value: cbs and pbs must be 1 or more, and
// pir no slower than cir.
func NewTRTCM(cir Rate, cbs int64, pir Rate, pbs int64, opts ...Option) (*ThreeColorMarker, error) {
	m, err := decide.NewTRTCM(cir.local(), cbs, pir.local(), pbs)
	return newMarker("trTCM", m, err, opts)
}

// NewRFC4115 makes the two rate three color marker of RFC 4115, with the
// options [MaxKeys] and [DenyNew].
//
// Its buckets are independent: cir fills cbs units for Green, eir fills ebs
// units for Yellow. Unlike with [NewTRTCM], a Green request takes nothing from the
// second bucket, so eir may be slower than cir.
//
// Bound: in any window of length w at most cbs + cir*w units are Green, and
// ebs + eir*w Yellow.
//
// The error names the field and the value: cbs and ebs may each be 0, not both.
func NewRFC4115(cir Rate, cbs int64, eir Rate, ebs int64, opts ...Option) (*ThreeColorMarker, error) {
	m, err := decide.NewRFC4115(cir.local(), cbs, eir.local(), ebs)
	return newMarker("RFC 4115", m, err, opts)
}

// ThreeColorMarker is a [Marker] with two token buckets a key, made by
// [NewSRTCM], [NewTRTCM] or [NewRFC4115]. The buckets start full and are counted
// exactly, fractions of a unit included. A clock reading that is not after the
// last one fills nothing. A call allocates nothing.
type ThreeColorMarker struct {
	colors  *decide.ThreeColor
	store   *keystore.Store[*decide.ColorState, decide.ColorState]
	denyNew bool
}

func newMarker(name string, colors *decide.ThreeColor, err error, opts []Option) (*ThreeColorMarker, error) {
	k := kind{title: name, takes: []string{"MaxKeys", "DenyNew"}}
	s, configured := k.configure(Spec{}, opts)
	switch {
	case configured != nil:
		return nil, configured
	case err != nil:
		return nil, fmt.Errorf("algo: %s: %w", name, err)
	}
	return &ThreeColorMarker{colors, newValues(s, (*decide.ColorState).Inherit), s.DenyNew}, nil
}

// Mark implements [Marker]. It ignores ctx, because it never waits.
func (m *ThreeColorMarker) Mark(_ context.Context, key string, n int64, in Color) (Color, error) {
	if n < 0 {
		return Red, costError(n)
	}
	return m.markAt(m.store.Clock.Now(), key, n, in), nil
}

func (m *ThreeColorMarker) markAt(now int64, key string, n int64, in Color) Color {
	in = min(in, Red)
	out := decide.Red
	_, r := m.store.Update(key, now, func(s keystore.State[*decide.ColorState], now int64) (*decide.ColorState, int64, bool) {
		out = m.colors.Mark(s.State, now, n, decide.Color(in))
		return s.State, m.colors.Expiry(s.State, now), n > 0 && out != decide.Red
	})
	if r == keystore.Full {
		return Red
	}
	return Color(out)
}

// Reset fills the buckets of key. Earlier admissions of key, and of a few
// other keys, cannot be refunded any more.
func (m *ThreeColorMarker) Reset(key string) { m.limiter(Green).Reset(key) }

// Len counts the keys whose buckets are not full. It walks the table.
func (m *ThreeColorMarker) Len() int { return m.limiter(Green).Len() }

// Cap is the most keys with debt that the marker holds, see [MaxKeys].
func (m *ThreeColorMarker) Cap() int { return m.store.Cap() }

// Overflowed counts the decisions on new keys that found the table full. If it
// grows, MaxKeys is too small or a client invents keys.
func (m *ThreeColorMarker) Overflowed() uint64 { return m.store.Overflowed() }

// limiter returns a limiter that admits requests that m marks pass or greener.
func (m *ThreeColorMarker) limiter(pass Color) *MarkerLimiter {
	l, c := new(MarkerLimiter), &decide.ColorLimit{ThreeColor: m.colors, Pass: decide.Color(pass)}
	l.use(m.store, m.denyNew)
	promised := limit[*decide.ColorState]{decider: c}
	if pass != Red {
		promised.window = keystore.ToDuration(c.FillTime())
	}
	l.limit.Store(&promised)
	return l
}
