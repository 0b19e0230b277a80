package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/bench/host"
	"github.com/stretchr/testify/require"
)

func rowOf(name string, k kind, ns ...float64) row {
	return row{contender: contender{name: name, kind: k}, ns: ns}
}

// sample is a report with one group in which a peer wins.
func sample() report {
	res := result{work: work{id: "bucket", title: "One bucket, admitted", cores: 1, us: "sluice Allow"}, rows: []row{
		rowOf("floor", floor, 10, 20, 10),
		rowOf("sluice Allow", ours, 12, 24, 12),
		rowOf("sluice Acquire and Release", ours, 20, 40, 20),
		rowOf("swift", peer, 11, 22, 11),
		rowOf("slow", peer, 24, 48, 24),
	}}
	return report{
		when: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), plan: plan{20, time.Millisecond},
		machine: machine{Facts: host.Facts{CPU: "a processor", Virtual: true}, clock: 9.5},
		results: []result{res}, keys: 10,
		prints: []footprint{{sluice, 32}, {"thrifty", 16}, {"lavish", 200}},
		attacks: []attacked{{attack{id: "x", title: "An attack", does: "This.", holds: "that"}, []verdict{
			{sluice, outcome{"0 of 1", true}}, {"peer with a mode", outcome{"1 of 1 | all", false}},
			{"sluice otherwise", outcome{"1 of 1", false}},
		}}},
	}
}

func TestReportSaysWhereWeLose(t *testing.T) {
	page := sample().markdown()
	_, losses, ok := strings.Cut(page, "## Where sluice loses")
	require.True(t, ok)
	losses, _, _ = strings.Cut(losses, "## How")
	require.Contains(t, losses, "swift takes 0.92 x the time of sluice Allow")
	require.Contains(t, losses, "thrifty keeps 16 bytes a key, sluice 32")
	require.Contains(t, losses, "swift takes 0.55 x the time of sluice Acquire and Release")
	require.NotContains(t, losses, "slow")
	require.NotContains(t, losses, "lavish")
}

// The page begins with its main result.
func TestReportAnswersFirst(t *testing.T) {
	page := sample().markdown()
	require.Contains(t, page, "## Is it fast enough?")
	require.Contains(t, page, "| one bucket for all | 20ns | 0.02 % | 0 |")
	first, last := strings.Index(page, "\n## "), strings.LastIndex(page, "\n## ")
	require.True(t, strings.HasPrefix(page[first+1:], "## Is it fast enough?"))
	require.True(t, strings.HasPrefix(page[last+1:], "## Targets"))
	require.NotContains(t, report{}.markdown(), "fast enough", "nothing was measured")
}

func TestReportJudgesTargets(t *testing.T) {
	page := sample().markdown()
	require.Contains(t, page, "| One bucket, admitted: sluice Allow | 1.25 x the floor | 1.20 x the floor | met, 4 % to spare |")
	require.Contains(t, page, "| One bucket, admitted: sluice Acquire and Release | 1.70 x the floor | 2.00 x the floor | **missed** by 18 % |")
	require.Contains(t, page, "3 of 4 are met")
	require.Contains(t, page, "a virtual machine")
}

func TestTargetBelowTheFloorIsSaidToBe(t *testing.T) {
	r := sample()
	r.results[0].id = "keyed-1024"
	r.results[0].rows[0] = rowOf("floor", floor, 50, 50, 50)
	require.Contains(t, r.markdown(), "is above the target of: One bucket, admitted: sluice Allow (target 45 ns, floor 50 ns)")
}

// TestMatrixShowsOurColumnOnly: a further try of sluice neither hides nor
// changes its verdict, and is among the figures.
func TestMatrixShowsOurColumnOnly(t *testing.T) {
	page := sample().markdown()
	require.Contains(t, page, "| attack | sluice | peer |")
	require.Contains(t, page, "| [An attack](#x) | holds | **falls** |")
	require.Contains(t, page, "| falls to | 0 | 1 |")
	require.Contains(t, page, "| sluice otherwise | **falls** | 1 of 1 |")
	require.Contains(t, page, `1 of 1 \| all`)
}

func TestPicturesAreWritten(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, sample().pictures(dir))
	for _, name := range []string{"bench-bucket.svg", "bench-memory.svg"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(text), "<svg")
	}
}

// TestEveryPicturedGroupIsMeasured: a group that is renamed would vanish from its
// picture.
func TestEveryPicturedGroupIsMeasured(t *testing.T) {
	ids := map[string]bool{}
	for _, w := range append(works(), redisWorks("")...) {
		require.False(t, ids[w.id], "two groups are called %s", w.id)
		ids[w.id] = true
	}
	for _, p := range pictured {
		for _, id := range p.ids {
			require.True(t, ids[id], "%s shows %s", p.name, id)
		}
	}
}

// TestPageLinksWhatIsDrawn: neither a link without a picture nor a picture
// without a link.
func TestPageLinksWhatIsDrawn(t *testing.T) {
	r := sample()
	page := r.markdown()
	require.Equal(t, len(r.panels()), strings.Count(page, "]("+"bench-"))
	for name := range r.panels() {
		require.Contains(t, page, "(bench-"+name+".svg)")
	}
}

// TestAttacksOnWhatIsInFlightHaveTheirOwnMatrix: its libraries are others.
func TestAttacksOnWhatIsInFlightHaveTheirOwnMatrix(t *testing.T) {
	r := sample()
	r.attacks = append(r.attacks, attacked{attack{id: "y", title: "Another", inFlight: true}, []verdict{
		{sluice, outcome{"1", true}}, {"semaphore", outcome{"2", false}},
	}})
	page := r.markdown()
	require.Contains(t, page, "| attack | sluice | peer |")
	require.Contains(t, page, "| attack | sluice | semaphore |")
}

func TestToldReadsEveryForm(t *testing.T) {
	for _, c := range []struct {
		field, value string
		at           time.Time // zero: in seconds from now
	}{
		{"Retry-After", "Fri, 02 Jan 2026 03:04:05 GMT", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{"Retry-After", "Fri, 02 Jan 2026 03:04:05 UTC", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{"X-RateLimit-Reset", "1767323045", time.Unix(1767323045, 0)},
		{"RateLimit-Reset", "3600", time.Time{}},
	} {
		h := http.Header{}
		h.Set(c.field, c.value)
		before := time.Now()
		field, until := invited(h)
		require.Equal(t, c.field+": "+c.value, field)
		if c.at.IsZero() {
			require.False(t, until.Before(before.Add(time.Hour)))
		} else {
			require.True(t, c.at.Equal(until), until)
		}
	}
}
