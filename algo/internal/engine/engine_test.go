package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/decide"
	"github.com/sluice-go/sluice/internal/keystore"
)

// hourly makes a bucket of 10 an hour in place of the one in use.
func hourly(t *testing.T, k *Keyed[int64, struct{}], burst int64) {
	require.NoError(t, k.Change(func(old Decider[int64], clock *keystore.Clock) (l Limit[int64], err error) {
		rate := decide.Rate{Count: 10, Period: time.Hour, Resolution: decide.Nanoseconds}
		g, err := decide.NewGCRA(rate, burst, 0)
		if old != nil && err == nil {
			g = g.Succeed(old.(*decide.GCRA), clock.Now())
		}
		return Limit[int64]{Decider: g}, err
	}))
}

// A refund makes no place in the table for a key that has spent nothing, after a change too.
func TestRefundOfAnUnseenKey(t *testing.T) {
	k := new(Keyed[int64, struct{}])
	k.Init(NewWords(Config{}), Config{})
	hourly(t, k, 100)
	hourly(t, k, 1)
	k.Refund("k", 1)
	require.False(t, k.store.Has("k"))
}

// A change that cannot be made leaves the limit as it was.
func TestFailedChange(t *testing.T) {
	k := new(Keyed[int64, struct{}])
	k.Init(NewWords(Config{MaxKeys: 7}), Config{MaxKeys: 7})
	hourly(t, k, 3)
	require.Error(t, k.Change(func(Decider[int64], *keystore.Clock) (Limit[int64], error) {
		return Limit[int64]{}, errors.New("no")
	}))
	quota, _ := k.Limit()
	require.EqualValues(t, 3, quota)
	require.Equal(t, 7, k.Room())
}
