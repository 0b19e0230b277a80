package live_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/gateway/live"
)

// A restart gives back only the part that has drained meanwhile.
func TestJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "owed")
		limits := map[string]string{"bucket": "60/h burst 60", "window": "fixed-window 10/h", "log": "sliding-log 10/h", "gone": "5/h", "other": "5/h"}
		journal, before := live.NewJournal(path), live.NewLimiters(nil, nil)
		now, _ := apply(t, before, limits)
		for id, n := range map[string]int64{"bucket": 40, "window": 7, "log": 4, "gone": 5, "other": 5} {
			journal.Note(id, "k")
			require.True(t, spend(t, now[id], n).Allowed)
		}
		journal.Note("bucket", "owes nothing")
		require.NoError(t, journal.Save(now))

		time.Sleep(10 * time.Minute) // in which a bucket of 60 an hour gets 10 back
		delete(limits, "gone")
		limits["other"] = "strict 5/h"
		after := live.NewLimiters(nil, nil)
		now, _ = apply(t, after, limits)
		restored, err := live.NewJournal(path).Restore(now)
		require.NoError(t, err)
		require.Equal(t, 3, restored)
		for id, left := range map[string]int64{"bucket": 30, "window": 3, "log": 6, "other": 3} {
			require.Equal(t, left, spend(t, now[id], 0).Remaining, id)
		}

		time.Sleep(2 * time.Hour) // all has drained
		fresh := live.NewLimiters(nil, nil)
		now, _ = apply(t, fresh, limits)
		restored, err = live.NewJournal(path).Restore(now)
		require.NoError(t, err)
		require.Zero(t, restored)
		restored, err = live.NewJournal(path + ".none").Restore(now)
		require.NoError(t, err)
		require.Zero(t, restored)
	})
}
