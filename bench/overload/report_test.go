package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/bench/host"
)

// cellOf is a cell that meets the targets.
func cellOf(work, limiter string, times, goodput float64) figures {
	f := figures{
		Work: work, Limiter: limiter, Transport: rig{limiter: limiter}.transport(), Times: times, Capacity: 200, RejectCost: 15e-6,
		Goodput: goodput, P50: 20 * time.Millisecond, P99: 123 * time.Millisecond, Date: "2026-01-02",
		Series: []float64{.8, .9, 1}, Begins: 250 * time.Millisecond, Ends: 6250 * time.Millisecond, Recovery: time.Second,
	}
	f.left()
	return f
}

// written writes the records and returns the page that is made of them.
func written(t *testing.T, cells ...figures) (page, dir string) {
	t.Helper()
	dir = t.TempDir()
	records := filepath.Join(dir, "records")
	require.NoError(t, appendLine(records, line{Machine: &host.Facts{CPU: "a processor", Cores: 2, Virtual: true, Peers: []string{"peer v1"}}}))
	for _, f := range cells {
		require.NoError(t, f.save(records))
	}
	require.NoError(t, report(records, dir))
	text, err := os.ReadFile(filepath.Join(dir, "overload.md"))
	require.NoError(t, err)
	return string(text), dir
}

func TestReport(t *testing.T) {
	late := cellOf("5ms", "default", 10, .8)
	late.P99, late.Before, late.After, late.Recovery = 300*time.Millisecond, .02, .005, 5*time.Second
	calm := cellOf("5ms", "default", .85, .85)
	calm.Before, calm.Begins, calm.Ends = .001, 0, 0
	broken := figures{Work: "5ms", Limiter: "aegis", Transport: "http", Times: 5, Failed: "the server ended | badly"}
	tap := cellOf("500us", "default/tap", 5, .945)
	tap.P99 = 80 * time.Millisecond
	page, dir := written(t, cellOf("5ms", "gozero", 5, .99), late, cellOf("5ms", "default", 5, .1), broken,
		cellOf("5ms", "default", 5, .98), cellOf("5ms", "none", 5, .02), calm,
		tap, cellOf("500us", "none/grpc", 5, 0))
	for _, want := range []string{
		"Measured on 2026-01-02 by `make overload`", "| processor | a processor, 2 cores, a virtual machine |", "| peers, and gRPC | peer v1 |",
		"| length of the overload | 6s |", "**A server with `adaptive.Default()` answers 99 % of what it can in time, and one without a limiter 2 %**", "![goodput over load](overload.svg)", "![goodput over time](overload-time.svg)",
		// The targets: the worst of the loads, and by how much it misses.
		"| 5ms (tuned) | **0.82 at 10x, missed by 0.11** | **300ms at 10x, missed by 50ms** | **2.0 % before 10x, missed by 1.0 %** | **5s after 10x, missed by 3s** |",
		"| 500us over gRPC, with the tap | 0.96 at 5x | 80ms at 5x |", "4 of 8 are met",
		"- 5ms at 5x: gozero keeps 0.990 of the capacity, default 0.980",
		"judged on 100us, 100ms, 2ms+50ms, json, fanout, bimodal, mutex, proxy and on gRPC",
		// The tables: the last measurement of each cell, in the order of the matrix.
		"| none | 5x | 0.020 |", "| **default** | 5x | 0.980 | 0.988 | 0.99 | 20ms | 123ms | 0.0 % | 0.0 % | 0.0 % | 0.0 % | 1s |",
		"| **default** | 0.85x | 0.850 | | | 20ms | 123ms | 0.1 % |", "| not in 5s |", "| **default, tap** | 5x |",
		"| aegis | 5x | failed: the server ended / badly |",
	} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "0.100")
	require.Less(t, strings.Index(page, "| none | 5x"), strings.Index(page, "| **default** | 5x"))
	for _, name := range []string{"overload.svg", "overload-time.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Contains(t, string(svg), "gozero", name)
		require.Contains(t, string(svg), "default", name)
		require.NotContains(t, string(svg), "aegis", name)
	}
}

// TestNeedlessRejections: what misses the SLO without a limiter may be rejected.
func TestNeedlessRejections(t *testing.T) {
	calm := cellOf("30ms", "default", .85, .8)
	calm.Before = .025
	page, _ := written(t, cellOf("30ms", "none", .85, .85*.98), calm)
	require.Contains(t, page, "| 2.5 % at 0.85x |")
	page, _ = written(t, cellOf("30ms", "none", .85, .85*.99), calm)
	require.Contains(t, page, "| **2.5 % at 0.85x, missed by 0.5 %** |")
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
		"## Not measurable on this machine", "- 100us of processor time at 5x: default\n\n", "| rejects | 5x | | | | | | 60.0 % | 40.0 % | | | |",
		"| 100us | 0.98 at 2x |", "| 100us, denied at the socket | 0.99 at 5x |", "8 of 8 are met",
	} {
		require.Contains(t, page, want)
	}
	rejects.GaveUp = .01
	page, _ = written(t, rejects, storm)
	require.NotContains(t, page, "Not measurable")
	require.Contains(t, page, "| 100us | **0.00 at 5x, missed by 0.93** |")
}

// TestReportInventsNothing: one cell makes a page with one row, without targets,
// and without the picture that needs another.
func TestReportInventsNothing(t *testing.T) {
	page, dir := written(t, cellOf("30ms", "none", 2, .1))
	require.Contains(t, page, "| none | 2x | 0.100 |")
	for _, absent := range []string{"## Targets", "Where a peer", "overload-time.svg", "| **default** |", "5ms of"} {
		require.NotContains(t, page, absent)
	}
	require.NoFileExists(t, filepath.Join(dir, "overload-time.svg"))
	require.FileExists(t, filepath.Join(dir, "overload.svg"))
}

// TestOnlyFailures: a file of nothing but failures is a page of failures.
func TestOnlyFailures(t *testing.T) {
	page, dir := written(t, figures{Work: "5ms", Limiter: "default", Transport: "http", Times: 5, Failed: "no"})
	require.Contains(t, page, "failed: no")
	require.NotContains(t, page, "## Targets")
	require.NoFileExists(t, filepath.Join(dir, "overload.svg"))
}

func TestReportRefuses(t *testing.T) {
	records := filepath.Join(t.TempDir(), "records")
	require.Error(t, report(records, t.TempDir()))
	require.NoError(t, os.WriteFile(records, nil, 0o644))
	require.ErrorContains(t, report(records, t.TempDir()), "has no figures")
	require.NoError(t, os.WriteFile(records, []byte("{}\n{"), 0o644))
	require.ErrorContains(t, report(records, t.TempDir()), "records:2: ")
}
