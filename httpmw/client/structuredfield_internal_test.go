package client

import (
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"
)

// library reads a list of strings by another implementation.
func library(text string) (all []parameters, well bool) {
	list, err := httpsfv.UnmarshalList([]string{text})
	if err != nil {
		return nil, false
	}
	for _, member := range list {
		item, isItem := member.(httpsfv.Item)
		if !isItem {
			return nil, false
		}
		if _, isString := item.Value.(string); !isString {
			return nil, false
		}
		params := parameters{}
		for _, name := range item.Params.Names() {
			if v, _ := item.Params.Get(name); v != nil {
				if n, integer := v.(int64); integer {
					params[name] = n
				}
			}
		}
		all = append(all, params)
	}
	return all, true
}

func mine(text string) (all []parameters, well bool) {
	well = structured(text).strings(func(p parameters) { all = append(all, p) })
	if !well {
		return nil, false
	}
	return all, true
}

var lists = []string{
	``, ` `, `"a"`, `"a";r=1;t=2`, `"a";r=0;t=1, "b";r=-3;t=15`, `"a";r=0;r=7`, `"a";r=0;r`, `"a";r=0;r=x`,
	`"a"; r=0;  t=1`, `"a" ;r=0`, `"a";r=`, `"a";R=1`, `"a";r=1.5`, `"a";r=1.`, `"a";r=.5`, `"a";r=1.2345`,
	`"a";r=999999999999999`, `"a";r=1000000000000000`, `"a";r=1234567890123.1`, `"a";r=-`, `"a";r=--1`, `"a";r=+1`,
	`"a";pk=:YWJj:;r=0`, `"a";pk=:YWJj`, `"a";x=?1;r=0`, `"a";x=?2`, `"a";x="y\"z\\";r=0`, `"a";x="y`, `"\a"`, `"é"`,
	`"a",`, `"a",,"b"`, `,`, `"a" , "b"`, `"a"	,	"b"`, `a;r=0`, `1;r=0`, `("a");r=0`, `"a"x`, `"a";*k=1`, `"a";1=1`,
	`"a";x=tok/en:*;r=0`, `"a";x=*;r=0`, ` "a"`, `"a" `, "\"a\"\t", `"a";x`, `"a";`, `"a";;r=0`, `"a";r =0`, `"a";r= 0`,
	`"a";r=0;t=@1`, `"a";t=@1.5`, `"a";t=@`, `"a";x=%"a"`, `"a";r=00;t=010`, `"a";r=-0`,
}

// TestStructuredFields: the reader agrees with another implementation, but for display
// strings, which it does not know, and the letters of byte sequences, which it does not decode.
func TestStructuredFields(t *testing.T) {
	for _, text := range lists {
		agrees(t, text)
	}
}

func agrees(t *testing.T, text string) {
	t.Helper()
	want, well := library(text)
	got, ok := mine(text)
	if ok == well {
		require.Equal(t, want, got, "%q", text)
		return
	}
	require.True(t, well && strings.Contains(text, "%\"") || ok && strings.Contains(text, ":"), "%q: %v, %v by the library", text, ok, well)
}

func FuzzStructuredFields(f *testing.F) {
	for _, text := range lists {
		f.Add(text)
	}
	f.Fuzz(agrees)
}
