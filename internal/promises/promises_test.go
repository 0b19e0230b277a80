package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const doc = `// Package x.
//
// TestElsewhere is not in the table.
//
//	W1  A bucket keeps its bound.
//	    TestBound,
//	    TestClock
//	S3  No input panics.
//	    FuzzInput
//
// TestAfterwards is not in the table either.
package x
`

func TestParse(t *testing.T) {
	require.Equal(t, []promise{{"W1", []string{"TestBound", "TestClock"}}, {"S3", []string{"FuzzInput"}}}, parse(doc))
}

func events(lines ...string) *strings.Reader { return strings.NewReader(strings.Join(lines, "\n")) }

func TestOneLineForEachPromise(t *testing.T) {
	var out strings.Builder
	l := newLedger(parse(doc), &out)
	require.NoError(t, l.read(events(
		`{"Action":"output","Package":"p","Test":"TestBound/a","Output":"    x_test.go:3: W1: 7 sequences\n"}`,
		`{"Action":"output","Package":"p","Test":"TestBound/b","Output":"    x_test.go:3: W1: 7 sequences\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestBound/b","Elapsed":9}`,
		`{"Action":"pass","Package":"p","Test":"TestBound","Elapsed":1.5}`,
		`{"Action":"output","Package":"p","Test":"TestClock","Output":"    x_test.go:9: W1: 3 clocks\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestClock","Elapsed":0.5}`,
		`{"Action":"pass","Package":"p","Elapsed":2}`,
	)))
	require.Equal(t, "W1  2 x 7 sequences; 3 clocks   ok 2.0s\n", out.String())
	l.note("FuzzInput", result{ok: true, took: time.Second})
	require.Equal(t, "W1  2 x 7 sequences; 3 clocks   ok 2.0s\nS3  FuzzInput   ok 1.0s\n", out.String())
	require.True(t, l.close(true))
}

func TestFailuresAreShown(t *testing.T) {
	var out strings.Builder
	l := newLedger(parse(doc), &out)
	require.NoError(t, l.read(events(
		`{"Action":"output","Package":"p","Test":"TestBound","Output":"what went wrong\n"}`,
		`{"Action":"fail","Package":"p","Test":"TestBound","Elapsed":1}`,
		`{"Action":"pass","Package":"p","Test":"TestClock","Elapsed":1}`,
		`{"Action":"fail","Package":"p"}`,
	)))
	require.False(t, l.close(true))
	require.Contains(t, out.String(), "what went wrong")
	require.Contains(t, out.String(), "W1  TestBound, TestClock   FAILED")
	require.Contains(t, out.String(), "S3  did not run: FuzzInput   FAILED")
}

func TestPackageThatDoesNotCompile(t *testing.T) {
	var out strings.Builder
	l := newLedger(nil, &out)
	require.NoError(t, l.read(events(
		`{"Action":"build-output","Output":"x.go:1: oops\n"}`, `{"Action":"build-fail"}`,
	)))
	require.False(t, l.close(true))
	require.Contains(t, out.String(), "oops")
	require.Error(t, l.read(events("no event")))
}
