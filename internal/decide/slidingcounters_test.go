package decide

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
)

// TestW2_WindowAdoptsAtAFreshReading: a state of another period does not pass
// sooner because a late reading found it.
func TestW2_WindowAdoptsAtAFreshReading(t *testing.T) {
	for _, kind := range []sliders[Counters]{countersKind(), cellsKind()} {
		p, s, now := kind.next(per(3, 4*time.Second), 0), new(Counters), ticks(time.Hour)
		late := now
		now += ticks(900 * time.Millisecond)
		_, v := p.Decide(s, now, 3)
		require.True(t, v.Allowed)
		p = kind.next(per(3, 400*time.Millisecond), now)
		require.False(t, p.Plausible(s, late), kind.name)
		p.Clamp(s, now)
		require.True(t, p.Plausible(s, now))
		_, v = p.Decide(s, late, 1)
		require.False(t, v.Allowed)
		_, v = p.Decide(s, now+ticks(100*time.Millisecond), 3)
		require.False(t, v.Allowed, "3 of 3 were spent 100 ms ago")
		_, v = p.Decide(s, now+ticks(800*time.Millisecond), 3)
		require.True(t, v.Allowed)
	}
}

// TestCountersOfAClockThatWasAhead: a state more than a period ahead of a clock
// that was set back counts in the current period.
func TestCountersOfAClockThatWasAhead(t *testing.T) {
	p := must(NewSlidingCounters(Rate{5, time.Second, Microseconds}, 0))
	const second = 1_000_000
	s := p.State(20, 2, 3)
	require.False(t, p.Plausible(&s, 10*second))
	p.Clamp(&s, 10*second)
	require.True(t, p.Plausible(&s, 10*second))
	_, v := p.Decide(&s, 10*second, 1)
	require.False(t, v.Allowed)
	_, v = p.Decide(&s, 11*second+second/2, 3)
	require.True(t, v.Allowed, "ceil(3 / 2) weigh")
	_, v = p.Decide(&s, 11*second+second/2, 1)
	require.False(t, v.Allowed)
}

// TestW2_RefundAfterThePeriodChanged: a charge under the old period is not
// refunded from the count of the new one.
func TestW2_RefundAfterThePeriodChanged(t *testing.T) {
	for _, kind := range []sliders[Counters]{countersKind(), cellsKind()} {
		p, s, now := kind.next(per(5, time.Second), 0), new(Counters), ticks(time.Hour+time.Minute)
		_, v := p.Decide(s, now, 5)
		before := p.Charge(s, now, 5, v.Delay)
		now += ticks(2 * time.Second)
		_, v = p.Decide(s, now, 5)
		require.True(t, v.Allowed)
		p = kind.next(per(5, time.Hour), now)
		p.Clamp(s, now)
		_, given := p.Refund(s, before, now, 5, 0)
		require.Zero(t, given)
		_, v = p.Decide(s, now, 1)
		require.False(t, v.Allowed, "%s: 5 of 5 were kept", kind.name)
	}
}

// TestW2_QuotaRaisedAndLowered: units spent under a raised quota stay spent
// when the quota is lowered and raised again.
func TestW2_QuotaRaisedAndLowered(t *testing.T) {
	for _, kind := range []sliders[Counters]{countersKind(), cellsKind()} {
		now := ticks(time.Hour)
		two, three := per(2, time.Minute), per(3, time.Minute)
		kind.next(two, now)
		p, s := kind.next(three, now), new(Counters)
		_, v := p.Decide(s, now, 3)
		require.True(t, v.Allowed)
		p = kind.next(two, now)
		p.Clamp(s, now)
		p = kind.next(three, now)
		p.Clamp(s, now)
		_, v = p.Decide(s, now, 1)
		require.False(t, v.Allowed, "%s: 3 of 3 are spent", kind.name)
	}
}

// TestCountersOfARaisedQuota: after a quota was raised no key waits longer than one that
// has just spent all of it.
func TestCountersOfARaisedQuota(t *testing.T) {
	rnd := rand.New(rand.NewPCG(85, 86))
	for range cases.Count(5_000, 100_000) {
		p := must(NewSlidingCounters(per(1+rnd.Int64N(10), time.Second), tick))
		now := ticks(time.Hour) + rnd.Int64N(ticks(time.Second))
		s := new(Counters)
		p.ForceCharge(s, Charge{}, now, rnd.Int64N(2*p.quota))
		now += rnd.Int64N(ticks(time.Second))
		p.ForceCharge(s, Charge{}, now, rnd.Int64N(2*p.quota))
		more := must(NewSlidingCounters(per(p.quota+1+rnd.Int64N(5), time.Second), tick)).Succeed(p, now)
		state := *s
		_, before := more.Decide(&state, now, 1)
		state = *s
		plausible := more.Plausible(s, now)
		_, cut := more.Clamp(s, now)
		require.Equal(t, more.used(&state, now) > more.used(s, now), cut, "reported")
		require.Equal(t, cut, !plausible)
		require.True(t, more.Plausible(s, now))
		_, v := more.Decide(s, now, 1)
		spent := new(Counters)
		more.Decide(spent, now, more.quota)
		_, most := more.Decide(spent, now, 1)
		require.LessOrEqual(t, v.RetryAfter, most.RetryAfter)
		require.LessOrEqual(t, v.RetryAfter, before.RetryAfter)
	}
}
