package main

import (
	"net/http"
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
		rowOf("juju", peer, 11, 22, 11),
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

// printed is the report with one space between its words.
func printed(r report) string {
	var b strings.Builder
	r.print(&b)
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestReportSaysFirstWhereWeLose(t *testing.T) {
	losses, _, ok := strings.Cut(printed(sample()), "Targets")
	require.True(t, ok)
	require.True(t, strings.HasPrefix(losses, "Where a peer is ahead"))
	require.Contains(t, losses, "One bucket, admitted juju 0.92 of sluice Allow no keys, no refund")
	require.Contains(t, losses, "juju 0.55 of sluice Acquire and Release")
	require.Contains(t, losses, "bytes a key thrifty 0.50")
	require.NotContains(t, losses, "slow")
	require.NotContains(t, losses, "lavish")
}

// TestEveryPeerThatIsNamedIsMeasured: a peer whose name changes would lose its sentence.
func TestEveryPeerThatIsNamedIsMeasured(t *testing.T) {
	var names []string
	ids := map[string]bool{}
	for _, w := range append(works(), redisWorks("")...) {
		require.False(t, ids[w.id], "two groups are called %s", w.id)
		if ids[w.id] = true; strings.HasPrefix(w.id, "redis") || strings.HasPrefix(w.id, "keyed") {
			continue
		}
		for _, c := range w.make() {
			names = append(names, c.name)
		}
		if w.end != nil {
			w.end()
		}
	}
	all := strings.Join(append(names, redisRate, "ulule"), "\n")
	for _, l := range lacks {
		require.Contains(t, all, l.peer)
	}
}

func TestReportJudgesTargets(t *testing.T) {
	page := printed(sample())
	require.Contains(t, page, "One bucket, admitted: sluice Allow 1.25 x the floor 1.20 x the floor met, 4 % to spare")
	require.Contains(t, page, "One bucket, admitted: sluice Acquire and Release 1.70 x the floor 2.00 x the floor MISSED by 18 %")
	require.Contains(t, page, "3 of 4 are met")
	require.Contains(t, page, "a virtual machine")
}

func TestAttacksAreCounted(t *testing.T) {
	page := printed(sample())
	require.Contains(t, page, "Attack x: This. Holds: that. sluice holds 0 of 1 peer with a mode falls 1 of 1 | all sluice otherwise falls 1 of 1")
	require.Contains(t, page, "Attacks, of 1, that a library falls to peer with a mode 1 sluice otherwise 1")
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
