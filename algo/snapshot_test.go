package algo_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/algo"
)

func TestSnapshotSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := bucket(algo.PerHour(60), algo.MaxWait(time.Hour))
		spent := map[string]int64{"alice": 60, "bob": 7, "": 30, "carol": 90}
		for key, n := range spent {
			require.True(t, must(t, old, key, n).Allowed)
		}
		time.Sleep(time.Second)
		before := map[string]algo.Decision{}
		for key := range spent {
			before[key] = peek(t, old, key)
		}
		data := old.Snapshot(maps.Keys(spent))

		fresh := bucket(algo.PerHour(60), algo.MaxWait(time.Hour))
		require.NoError(t, fresh.Restore(data))
		for key, d := range before {
			require.Equal(t, d, peek(t, fresh, key), "key %q", key)
		}
		require.Equal(t, int64(60), peek(t, fresh, "dave").Remaining)

		// The time in between counts.
		time.Sleep(10 * time.Minute)
		later := bucket(algo.PerHour(60))
		require.NoError(t, later.Restore(data))
		for key := range spent {
			require.Equal(t, peek(t, fresh, key), peek(t, later, key), "key %q", key)
		}
		require.Equal(t, int64(60), peek(t, later, "bob").Remaining, "paid off meanwhile")
		require.Equal(t, 2, later.Len(), "bob owes nothing and takes no room")
	})
}

// TestSnapshotOfSlowKeys: keys that take long to come owe no less for it.
func TestSnapshotOfSlowKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, fresh := bucket(algo.PerMinute(1)), bucket(algo.PerMinute(1))
		require.True(t, old.Allow("k", 1))
		data := old.Snapshot(func(yield func(string) bool) {
			time.Sleep(20 * time.Second)
			yield("k")
		})
		time.Sleep(10 * time.Second)
		require.NoError(t, fresh.Restore(data))
		require.Equal(t, peek(t, old, "k"), peek(t, fresh, "k"))
	})
}

func TestRestoreOnlyEverAddsDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bucket(algo.PerHour(60))
		require.True(t, l.Allow("k", 10))
		early := l.Snapshot(slices.Values([]string{"k", "k", "unknown"}))
		require.True(t, l.Allow("k", 20))
		for range 3 {
			require.NoError(t, l.Restore(early))
			require.Equal(t, int64(30), peek(t, l, "k").Remaining, "the larger debt stands")
		}
		late := l.Snapshot(slices.Values([]string{"k"}))
		l.Reset("k")
		for range 3 {
			require.NoError(t, l.Restore(late))
			require.Equal(t, int64(30), peek(t, l, "k").Remaining, "and is not added up")
		}
		require.True(t, l.Allow("k", 30), "a restored key spends on as ever")
		require.False(t, l.Allow("k", 1))

		empty := bucket(algo.PerHour(60)).Snapshot(nil)
		require.NoError(t, l.Restore(empty))
		require.Zero(t, peek(t, l, "k").Remaining)

		// Into a smaller limit: cut to what it can hold.
		deep := bucket(algo.PerHour(60), algo.MaxWait(10*time.Hour))
		require.True(t, must(t, deep, "k", 300).Allowed)
		small := bucket(algo.PerHour(2))
		require.NoError(t, small.Restore(deep.Snapshot(slices.Values([]string{"k"}))))
		require.Equal(t, 2*time.Hour, peek(t, small, "k").ResetAfter)
	})
}

func TestSnapshotStopsWithItsKeys(t *testing.T) {
	l := bucket(algo.PerHour(60))
	require.True(t, l.Allow("", 1))
	var seen int
	keys := iter.Seq[string](func(yield func(string) bool) {
		for i := range 1000 {
			seen++
			if !yield(fmt.Sprint("never-", i)) {
				return
			}
		}
	})
	require.Len(t, l.Snapshot(keys), len(l.Snapshot(nil)), "keys that owe nothing take no room")
	require.Equal(t, 1000, seen)
}

func TestRestoreRefuses(t *testing.T) {
	l := bucket(algo.PerHour(60))
	require.True(t, l.Allow("k", 30))
	good := l.Snapshot(slices.Values([]string{"k"}))
	kind := "token bucket"
	soon := uint64(time.Now().UnixNano())
	header := func(kind string, taken uint64) []byte {
		b := binary.AppendUvarint([]byte("sluice\x001"), uint64(len(kind)))
		return binary.BigEndian.AppendUint64(append(b, kind...), taken)
	}
	with := func(b []byte, more ...byte) []byte {
		b = append(slices.Clone(b), more...)
		return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	}
	in(t, map[string]struct {
		data []byte
		says string
	}{
		"nothing":        {nil, "does not begin"},
		"other data":     {[]byte(`{"debt": 7, "key": "k"}`), "does not begin"},
		"other version":  {append([]byte("sluice\x002"), good[8:]...), "does not begin"},
		"a bit":          {flip(good, len(good)/2), "checksum"},
		"cut":            {good[:len(good)-1], "checksum"},
		"other kind":     {with(header("sliding window", soon)), `of a "sliding window", want "token bucket"`},
		"no kind":        {with([]byte("sluice\x001")), "malformed"},
		"long kind":      {with(append([]byte("sluice\x001"), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)), "malformed"},
		"no time":        {with([]byte("sluice\x001\x0ctoken bucket")), "malformed"},
		"before 1970":    {with(header(kind, 1<<63)), "malformed"},
		"key cut":        {with(header(kind, soon), 5, 'k'), "malformed"},
		"no debt":        {with(header(kind, soon), 1, 'k'), "malformed"},
		"negative debt":  {with(header(kind, soon), append([]byte{1, 'k'}, binary.AppendUvarint(nil, 1<<63)...)...), "malformed"},
		"endless varint": {with(header(kind, soon), 1, 'k', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), "malformed"},
	}, func(t *testing.T, c struct {
		data []byte
		says string
	}) {
		fresh := bucket(algo.PerHour(60))
		err := fresh.Restore(c.data)
		require.ErrorIs(t, err, algo.ErrSnapshot)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, int64(60), peek(t, fresh, "k").Remaining)
	})
	// A good entry before a bad one: nothing is restored.
	fresh := bucket(algo.PerHour(60))
	require.ErrorIs(t, fresh.Restore(with(good[:len(good)-4], 1, 'j')), algo.ErrSnapshot)
	require.Equal(t, int64(60), peek(t, fresh, "k").Remaining)
	// Taken in the future: the wall clock was set back. All of it is owed.
	require.NoError(t, fresh.Restore(with(header(kind, soon+uint64(time.Hour)), append([]byte{1, 'k'}, binary.AppendUvarint(nil, uint64(30*time.Minute))...)...)))
	require.Equal(t, int64(30), peek(t, fresh, "k").Remaining)
}

func flip(data []byte, i int) []byte {
	data = slices.Clone(data)
	data[i] ^= 4
	return data
}

// Any debts, restored at any time into any limit: never more is left than
// before, and no more than time has paid off.
func TestSnapshotProperty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			from, to := bucket(algo.PerMinute(10), algo.MaxWait(time.Minute)), bucket(algo.PerMinute(10), algo.MaxWait(time.Minute))
			keys := []string{"", "a", "b"}
			for _, k := range keys {
				must(t, from, k, rapid.Int64Range(0, 20).Draw(t, "from"))
				must(t, to, k, rapid.Int64Range(0, 20).Draw(t, "to"))
			}
			data := from.Snapshot(slices.Values(keys))
			time.Sleep(time.Duration(rapid.Int64Range(0, int64(3*time.Minute)).Draw(t, "later")))
			want := map[string]time.Duration{}
			for _, k := range keys {
				want[k] = max(peek(t, from, k).ResetAfter, peek(t, to, k).ResetAfter)
			}
			require.NoError(t, to.Restore(data))
			for _, k := range keys {
				require.Equal(t, want[k], peek(t, to, k).ResetAfter, "the larger debt")
			}
		})
	})
}

func FuzzRestore(f *testing.F) {
	l := bucket(algo.PerHour(60))
	l.Allow("", 3)
	l.Allow("k", 30)
	f.Add(l.Snapshot(slices.Values([]string{"k"})), uint8(1))
	f.Add([]byte("sluice\x001\x0ctoken bucket"), uint8(0))
	f.Fuzz(func(t *testing.T, data []byte, sum uint8) {
		if sum%2 == 1 && len(data) >= 4 { // past the checksum
			binary.BigEndian.PutUint32(data[len(data)-4:], crc32.Checksum(data[:len(data)-4], crc32.MakeTable(crc32.Castagnoli)))
		}
		l := bucket(algo.PerHour(60), algo.MaxKeys(64))
		l.Allow("k", 20)
		was := peek(t, l, "k").ResetAfter
		err := l.Restore(data)
		for _, key := range []string{"", "k", "other"} {
			d := peek(t, l, key)
			require.GreaterOrEqual(t, d.Remaining, int64(0))
			require.LessOrEqual(t, d.Remaining, int64(60))
			require.LessOrEqual(t, d.ResetAfter, 2*time.Hour, "no debt beyond the ceiling")
		}
		require.GreaterOrEqual(t, peek(t, l, "k").ResetAfter+time.Minute, was, "nothing is forgiven")
		if err != nil {
			require.ErrorIs(t, err, algo.ErrSnapshot)
			require.Equal(t, int64(60), peek(t, l, "").Remaining, "nothing changed")
		}
	})
}

// A snapshot holds no more than the limit of the moment can hold: what a slower
// limit left is cut before it is saved, and not only when it is restored.
func TestSnapshotOfALoweredLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := algo.Must(algo.NewTokenBucket(algo.PerHour(10)))
		require.True(t, l.Allow("k", 10))
		require.NoError(t, l.SetRate(algo.PerSecond(10))) // full again within seconds
		data := l.Snapshot(slices.Values([]string{"k"}))
		time.Sleep(time.Minute)
		fresh := algo.Must(algo.NewTokenBucket(algo.PerSecond(10)))
		require.NoError(t, fresh.Restore(data))
		require.EqualValues(t, 10, peek(t, fresh, "k").Remaining)
	})
}
