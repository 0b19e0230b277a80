package algo_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestBatchIsARunOfOneBackend(t *testing.T) {
	one, two := new(store), new(store)
	local := bucket(algo.PerHour(100))
	req := func(l algo.Limiter, n int64) algo.Request { return algo.Request{Limiter: l, Key: "k", N: n} }
	of := func(s *store) algo.Limiter { return s.limiter(algo.PerHour(100)) }

	lease := acquireAll(t,
		req(of(one), 1), req(of(one), 2), req(local, 3), req(of(one), 4),
		req(of(two), 5), req(algo.All(of(two), of(two)), 6), req(of(one), 7), req(of(one), 8))
	require.True(t, lease.Allowed)
	require.Equal(t, [][]int64{{1, 2}, {7, 8}}, one.batches)
	require.Equal(t, [][]int64{{5, 6, 6}}, two.batches, "an All is taken apart")
	require.Equal(t, 1, one.singles, "a lone one is acquired as usual")
	require.Len(t, lease.Parts(), 7+1, "one for each request")
	require.Empty(t, one.asked)
}

func TestBatchThroughChoosers(t *testing.T) {
	s := new(store)
	a, b := s.limiter(algo.PerHour(5)), s.limiter(algo.PerHour(5))
	off := algo.NewSwitch(s.limiter(algo.PerHour(5)))
	off.Off()
	lease := acquireAll(t,
		algo.Request{Limiter: algo.NewSwitch(a), N: 1},
		algo.Request{Limiter: listed(b, algo.Unlimited(), "k"), N: 1},
		algo.Request{Limiter: off, N: 1})
	require.True(t, lease.Allowed)
	require.Equal(t, [][]int64{{1, 1}}, s.batches)
	require.Equal(t, algo.SourceOff, lease.Parts()[2].Source)
	require.Equal(t, algo.SourceLocal, lease.Source, "a limit that is switched off does not affect the others")
	require.Equal(t, int64(4), lease.Remaining)
}

func TestBatchDenied(t *testing.T) {
	s := new(store)
	user, route, global := s.limiter(algo.PerHour(10)), s.limiter(algo.PerHour(2)), bucket(algo.PerHour(100))
	all := func(n int64) algo.Lease {
		return acquireAll(t, algo.Request{Limiter: global, N: n},
			algo.Request{Limiter: user, N: n}, algo.Request{Limiter: route, N: n})
	}
	require.True(t, must(t, route, "", 1).Allowed)
	lease := all(2)
	require.False(t, lease.Allowed)
	require.Equal(t, []bool{true, true, false}, verdicts(lease.Parts()))
	require.Equal(t, int64(2), lease.Limit, "of the one that denied")
	require.Equal(t, int64(10), peek(t, user, "").Remaining)
	require.Equal(t, int64(100), peek(t, global, "").Remaining, "the local charge is given back")
	require.Empty(t, s.asked, "the backend has said it all")

	empty := bucket(algo.PerHour(1))
	require.True(t, empty.Allow("", 1))
	lease = acquireAll(t, algo.Request{Limiter: empty, N: 1},
		algo.Request{Limiter: user, N: 1}, algo.Request{Limiter: route, N: 2})
	require.False(t, lease.Allowed)
	require.Equal(t, [][]int64{{1, 2}}, s.asked, "asked in one step")
	require.Len(t, s.batches, 1, "and not charged")
	require.Equal(t, []bool{false, true, false}, verdicts(lease.Parts()))
}

func TestBatchError(t *testing.T) {
	away := errors.New("away")
	s := &store{err: away}
	local := bucket(algo.PerHour(3))
	_, err := algo.AcquireAll(bg, algo.Request{Limiter: local, N: 3},
		algo.Request{Limiter: s.limiter(algo.PerHour(1)), N: 1}, algo.Request{Limiter: s.limiter(algo.PerHour(1)), N: 1})
	require.ErrorIs(t, err, away)
	require.ErrorContains(t, err, "request 2 of 3")
	require.Equal(t, int64(3), drain(t, local, ""))
}

func verdicts(ds []algo.Decision) (vs []bool) {
	for _, d := range ds {
		vs = append(vs, d.Allowed)
	}
	return vs
}

// A lone limiter of a backend is asked by the backend too; one that cannot
// answer leaves the zero Decision, and a charge that it leaves is not ours.
func TestBatchPeeksALoneRequest(t *testing.T) {
	s := new(store)
	one := s.limiter(algo.PerHour(4))
	empty := saying(algo.Decision{Reason: algo.Quota, RetryAfter: 1})
	lease := acquireAll(t, algo.Request{Limiter: empty, N: 1}, algo.Request{Limiter: one, N: 5})
	require.Equal(t, [][]int64{{5}}, s.asked)
	require.Equal(t, algo.Never, lease.Reason)
	require.Zero(t, s.singles)

	s.err = errors.New("away")
	for _, n := range []int{1, 2} {
		reqs := []algo.Request{{Limiter: empty, N: 1}, {Limiter: one, N: 1}, {Limiter: one, N: 1}}
		lease = acquireAll(t, reqs[:1+n]...)
		require.False(t, lease.Allowed)
		require.Equal(t, algo.Quota, lease.Reason)
		require.Equal(t, make([]algo.Decision, n), lease.Parts()[1:])
	}
}

// The units of earlier requests for a limit are added once to the requests of
// a step, also when the first of them is a peek.
func TestBatchCountsRepetitionsOnce(t *testing.T) {
	s := new(store)
	user := s.limiter(algo.PerHour(9))
	deny := algo.Request{Limiter: saying(algo.Decision{Reason: algo.Quota, RetryAfter: 1}), N: 1}
	want := func(n int64) algo.Request { return algo.Request{Limiter: user, N: n} }
	for _, asks := range []int64{0, 1} {
		s.asked = nil
		lease := acquireAll(t, want(3), deny, want(asks), want(3), want(2))
		require.Equal(t, [][]int64{{3 + asks, 3, 2}}, s.asked)
		require.Equal(t, []bool{true, false, true, true, true}, verdicts(lease.Parts()))
		require.Equal(t, int64(1), int64(lease.RetryAfter))
	}
}
