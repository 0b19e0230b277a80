package main

import (
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFaultsApply: every fault stands in the source as it is now, exactly once,
// and leaves it readable; no two have one name.
func TestFaultsApply(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, f := range faults() {
		require.False(t, names[f.name], "two faults are called %q", f.name)
		names[f.name] = true
		require.NotEqual(t, f.from, f.to, f.name)
		require.Regexp(t, `^([A-Z][0-9]|-)$`, f.promise, f.name)
		_, err := regexp.Compile(f.tests)
		require.NoError(t, err, f.name)
		text, err := f.apply(root)
		require.NoError(t, err, f.name)
		if path.Ext(f.file) == ".go" {
			_, err = parser.ParseFile(token.NewFileSet(), f.file, text, parser.SkipObjectResolution)
			require.NoError(t, err, f.name)
		}
	}
	require.GreaterOrEqual(t, len(names), 40)
}

func TestStaleFaultsAreErrors(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	for _, f := range []fault{
		{file: "doc.go", from: "this text stands nowhere"},
		{file: "doc.go", from: "the"},
		{file: "none.go", from: "package"},
	} {
		require.Error(t, try(root, t.TempDir(), "", &f).err, "%+v", f)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name, out string
		killers   []string
		err       string
	}{
		{"passes", `{"Action":"run","Test":"TestA"}
			{"Action":"pass","Test":"TestA"}
			{"Action":"pass"}`, nil, ""},
		{"fails", `{"Action":"run","Test":"TestA"}
			{"Action":"run","Test":"TestA/sub"}
			{"Action":"fail","Test":"TestA/sub"}
			{"Action":"fail","Test":"TestA"}
			{"Action":"fail"}`, []string{"TestA"}, ""},
		{"crashes", `{"Action":"run","Test":"TestA"}
			{"Action":"pass","Test":"TestA"}
			{"Action":"run","Test":"TestB"}
			{"Action":"output","Test":"TestB","Output":"panic"}
			{"Action":"fail"}`, []string{"TestB"}, ""},
		{"does not compile", `{"Action":"build-output","Output":"x.go:1:2: undefined: y\n"}
			{"Action":"build-fail"}
			{"Action":"fail"}`, nil, "undefined: y"},
		{"no test", `{"Action":"pass"}`, nil, "no test ran"},
		{"no event", `oops`, nil, "is no event"},
	} {
		v := judge(strings.NewReader(c.out))
		require.Equal(t, c.killers, v.killers, c.name)
		if c.err == "" {
			require.NoError(t, v.err, c.name)
		} else {
			require.ErrorContains(t, v.err, c.err, c.name)
		}
	}
}

func TestVerdictText(t *testing.T) {
	require.Equal(t, "SURVIVED", verdict{}.text())
	require.Equal(t, "TestA, TestB", verdict{killers: []string{"TestA", "TestB"}}.text())
	require.Equal(t, "A, B, C, D and 2 more", verdict{killers: []string{"A", "B", "C", "D", "E", "F"}}.text())
	require.Equal(t, "BROKEN: no test ran", verdict{err: errNothingRan}.text())
}
