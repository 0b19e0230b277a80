package decide

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLogSettleUnderASmallerQuota: units spent under a larger quota stay spent
// when more is charged than fits into a smaller one.
func TestLogSettleUnderASmallerQuota(t *testing.T) {
	ten, s, now := must(NewSlidingLog(per(10, time.Minute))), new(Timestamps), ticks(time.Hour)
	_, v := ten.Decide(s, now, 1)
	c := ten.Charge(s, now, 1, v.Delay)
	ten.Decide(s, now, 9)
	two := must(NewSlidingLog(per(2, time.Minute)))
	_, cut := two.ForceCharge(s, c, now, 1)
	require.True(t, cut)
	_, v = ten.Decide(s, now, 1)
	require.False(t, v.Allowed, "10 of 10 were kept")
	_, v = ten.Decide(s, now+ticks(time.Minute), 10)
	require.True(t, v.Allowed)
}

// TestLogWidens: timestamps outlive a change to a period that needs two words.
func TestLogWidens(t *testing.T) {
	short, s := must(NewSlidingLog(per(20, time.Second))), new(Timestamps)
	now := ticks(time.Hour)
	for i := range int64(12) {
		short.Decide(s, now+i*ticks(time.Millisecond), 1)
	}
	long := must(NewSlidingLog(per(20, time.Hour)))
	now += ticks(time.Minute)
	_, v := long.Decide(s, now, 9)
	require.False(t, v.Allowed)
	require.EqualValues(t, 8, v.Remaining)
	_, v = long.Decide(s, now, 8)
	require.True(t, v.Allowed)
	heir := new(Timestamps)
	heir.Inherit(s)
	_, v = long.Decide(heir, now, 1)
	require.False(t, v.Allowed)
	heir.Inherit(new(Timestamps))
	require.NotNil(t, heir.ring, "the ring is kept")
	_, v = long.Decide(heir, now, 20)
	require.True(t, v.Allowed)
}

// TestLogStaysSmall: charges beyond the quota take the place of older ones.
func TestLogStaysSmall(t *testing.T) {
	p, s := must(NewSlidingLog(per(20, time.Hour))), new(Timestamps)
	for i := range int64(100) {
		p.ForceCharge(s, Charge{}, ticks(time.Hour)+i, 7)
	}
	require.EqualValues(t, 20, s.size)
	require.EqualValues(t, 20, s.capacity())
}
