package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/bench/host"
)

// cellOf is a cell that meets the targets.
func cellOf(work, limiter string, times, goodput float64) figures {
	f := figures{
		Work: work, Limiter: limiter, Transport: rig{limiter: limiter}.transport(), Times: times, Capacity: 200, RejectCost: 15e-6,
		Goodput: goodput, P50: 20 * time.Millisecond, P99: 123 * time.Millisecond, Recovery: time.Second,
	}
	f.left()
	return f
}

// written writes the records and returns what is said of them.
func written(t *testing.T, cells ...figures) (page, dir string) {
	t.Helper()
	dir = t.TempDir()
	records := filepath.Join(dir, "records")
	require.NoError(t, appendLine(records, line{Machine: &host.Facts{CPU: "a processor", Cores: 2, Virtual: true, Peers: []string{"peer v1"}}}))
	for _, f := range cells {
		require.NoError(t, appendLine(records, f))
	}
	page, err := report(records, dir)
	require.NoError(t, err)
	return page, dir
}

func TestReport(t *testing.T) {
	late := cellOf("5ms", "default", 10, .8)
	late.P99, late.Before, late.After, late.Recovery = 300*time.Millisecond, .02, .005, 5*time.Second
	calm := cellOf("5ms", "default", .85, .85)
	calm.Before = .001
	broken := figures{Work: "5ms", Limiter: "aegis", Transport: "http", Times: 5, Failed: "the server ended | badly"}
	tap := cellOf("500us", "default/tap", 5, .945)
	tap.P99 = 80 * time.Millisecond
	page, dir := written(t, cellOf("5ms", "gozero", 5, .99), late, cellOf("5ms", "default", 5, .1), broken,
		cellOf("5ms", "default", 5, .98), cellOf("5ms", "none", 5, .02), calm,
		tap, cellOf("500us", "none/grpc", 5, 0))
	for _, want := range []string{
		"a processor, 2 cores, a virtual machine", "peers, and gRPC: peer v1",
		"A server with adaptive.Default() answers 99 % of what it can in time, and one without a limiter 2 %",
		// The targets: the worst of the loads, and by how much it misses.
		"5ms (tuned); MISSED by 0.11: 0.82 at 10x; MISSED by 50ms: 300ms at 10x; MISSED by 1.0 %: 2.0 % before 10x; MISSED by 3s: 5s after 10x\n",
		"500us over gRPC, with the tap; 0.96 at 5x; 80ms at 5x;", "4 of 8 are met",
		"5ms at 5x: gozero keeps 0.990 of the capacity, default 0.980",
	} {
		require.Contains(t, page, want)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "overload.svg"))
	require.NoError(t, err)
	require.Contains(t, string(svg), "gozero")
	require.Contains(t, string(svg), "default")
	require.NotContains(t, string(svg), "aegis")
}

// TestNeedlessRejections: what misses the SLO without a limiter may be rejected.
func TestNeedlessRejections(t *testing.T) {
	calm := cellOf("30ms", "default", .85, .8)
	calm.Before = .025
	page, _ := written(t, cellOf("30ms", "none", .85, .85*.98), calm)
	require.Contains(t, page, "; 2.5 % at 0.85x;")
	page, _ = written(t, cellOf("30ms", "none", .85, .85*.99), calm)
	require.Contains(t, page, "; MISSED by 0.5 %: 2.5 % at 0.85x;")
}

// TestBeyondTheGenerator: where clients of a server that only rejects give up, a cell in
// which they give up says nothing about its limiter; one in which they do not is judged.
func TestBeyondTheGenerator(t *testing.T) {
	rejects, storm, spared := cellOf("100us", "rejects", 5, 0), cellOf("100us", "default", 5, 0), cellOf("100us", "default/listener", 5, .98)
	rejects.Rejected, rejects.GaveUp, storm.GaveUp = .6, .4, .9
	judged := cellOf("100us", "default", 2, .98)
	spared.P99, judged.P99 = 20*time.Millisecond, 20*time.Millisecond
	page, _ := written(t, rejects, storm, spared, judged)
	for _, want := range []string{
		"Neither met nor missed", "\n100us at 5x: default\n", "\n100us; 0.98 at 2x;", "100us, denied at the socket; 0.99 at 5x;", "8 of 8 are met",
	} {
		require.Contains(t, page, want)
	}
	rejects.GaveUp = .01
	page, _ = written(t, rejects, storm)
	require.NotContains(t, page, "Neither met")
	require.Contains(t, page, "100us; MISSED by 0.93: 0.00 at 5x;")
}

// TestReportInventsNothing: neither one cell nor one that failed has a target.
func TestReportInventsNothing(t *testing.T) {
	page, dir := written(t, cellOf("30ms", "none", 2, .1))
	require.NotContains(t, page, "Targets")
	require.NotContains(t, page, "Where a peer")
	require.FileExists(t, filepath.Join(dir, "overload.svg"))
	page, dir = written(t, figures{Work: "5ms", Limiter: "default", Transport: "http", Times: 5, Failed: "no"})
	require.NotContains(t, page, "Targets")
	require.NoFileExists(t, filepath.Join(dir, "overload.svg"))
}

func TestReportRefuses(t *testing.T) {
	records := filepath.Join(t.TempDir(), "records")
	refused := func() error { _, err := report(records, t.TempDir()); return err }
	require.Error(t, refused())
	require.NoError(t, os.WriteFile(records, nil, 0o644))
	require.ErrorContains(t, refused(), "has no figures")
	require.NoError(t, os.WriteFile(records, []byte("{}\n{"), 0o644))
	require.ErrorContains(t, refused(), "records:2: ")
}
