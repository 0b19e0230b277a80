// Package marker colors requests by the spending of their key, with the markers of RFC 2697, RFC
// 2698 and RFC 4115, and makes limiters of colors.
//
// Use it where a request beyond the committed rate is degraded instead of denied. Otherwise use
// [algo.NewTokenBucket].
package marker

import (
	"context"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/internal/decide"
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
func (c Color) String() string {
	if c > Red {
		return "unknown"
	}
	return [...]string{"green", "yellow", "red"}[c]
}

// Marker colors requests by the spending of their key, and decides nothing.
//
// in is the color from an earlier marker; the result is never greener. Pass Green for uncolored
// requests: the color-blind mode of the RFCs. Anything beyond Red counts as Red.
//
// n is the cost in units (the RFCs count bytes); n = 0 changes nothing and returns the color of an
// empty request. A negative n is [algo.ErrCost] and Red. A Red request is not charged.
//
// Implementations are safe for concurrent use.
type Marker interface {
	Mark(ctx context.Context, key string, n int64, in Color) (Color, error)
}

// NewSRTCM makes a single rate three color marker, RFC 2697, with the options
// [algo.MaxKeys] and [algo.DenyNew].
//
// One rate, cir, fills the committed bucket of cbs units; its overflow fills
// the excess bucket of ebs units. Green takes from the first, Yellow from the
// second. It forgives bursts after idle times, and only their length matters.
//
// Bound: in any window of length w at most cbs + cir*w units are Green, and
// cbs + ebs + cir*w not Red.
//
// The error names the field and the value: cbs and ebs may each be 0, not both.
func NewSRTCM(cir algo.Rate, cbs, ebs int64, opts ...algo.Option) (*ThreeColor, error) {
	m, err := decide.NewSRTCM(local(cir), cbs, ebs)
	return newThreeColor("srTCM", m, err, opts)
}

// NewTRTCM makes a two rate three color marker, RFC 2698, with the options
// [algo.MaxKeys] and [algo.DenyNew].
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
func NewTRTCM(cir algo.Rate, cbs int64, pir algo.Rate, pbs int64, opts ...algo.Option) (*ThreeColor, error) {
	m, err := decide.NewTRTCM(local(cir), cbs, local(pir), pbs)
	return newThreeColor("trTCM", m, err, opts)
}

// NewRFC4115 makes the two rate three color marker of RFC 4115, with the
// options [algo.MaxKeys] and [algo.DenyNew].
//
// Its buckets are independent: cir fills cbs units for Green, eir fills ebs
// units for Yellow. Unlike with [NewTRTCM], a Green request takes nothing from the
// second bucket, so eir may be slower than cir.
//
// Bound: in any window of length w at most cbs + cir*w units are Green, and
// ebs + eir*w Yellow.
//
// The error names the field and the value: cbs and ebs may each be 0, not both.
func NewRFC4115(cir algo.Rate, cbs int64, eir algo.Rate, ebs int64, opts ...algo.Option) (*ThreeColor, error) {
	m, err := decide.NewRFC4115(local(cir), cbs, local(eir), ebs)
	return newThreeColor("RFC 4115", m, err, opts)
}
