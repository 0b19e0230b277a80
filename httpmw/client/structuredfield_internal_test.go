package client

import (
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"
)

// library reads a list of strings and tokens by another implementation.
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
		n, isInteger := item.Value.(int64)
		switch item.Value.(type) {
		case string, httpsfv.Token, int64:
		default:
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
		if isInteger {
			params["q"] = n
		}
		all = append(all, params)
	}
	return all, true
}

// libraryDictionary is library for a dictionary.
func libraryDictionary(text string) (all parameters, well bool) {
	members, err := httpsfv.UnmarshalDictionary([]string{text})
	if err != nil {
		return nil, false
	}
	all = parameters{}
	for _, name := range members.Names() {
		member, _ := members.Get(name)
		item, isItem := member.(httpsfv.Item)
		if !isItem {
			return nil, false
		}
		if n, integer := item.Value.(int64); integer {
			all[name] = n
		}
	}
	return all, true
}

func mine(text string) (all []parameters, well bool) {
	well = structured(text).items(func(p parameters) { all = append(all, p) })
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
	`100;w=60`, `100;q=7;w=60, "a";q=9`, `-1`, `1.5;w=1`, `limit=100, remaining=0, reset=7`, `limit=100;w=60,remaining=0`, `a, b=1, a=2`,
	`a=1,`, `a=(1 2)`, `a="x", b=?1, c=1.5, d=7`, `A=1`, `a=1;`, `a=1 b=2`,
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
	} else {
		differs(t, text, ok, well)
	}
	all, well := libraryDictionary(text)
	members, ok := structured(text).dictionary()
	if ok != well {
		differs(t, text, ok, well)
	} else if ok {
		require.Equal(t, all, members, "%q", text)
	}
}

func differs(t *testing.T, text string, ok, well bool) {
	t.Helper()
	require.True(t, well && strings.Contains(text, "%\"") || ok && strings.Contains(text, ":"), "%q: %v, %v by the library", text, ok, well)
}

func FuzzStructuredFields(f *testing.F) {
	for _, text := range lists {
		f.Add(text)
	}
	f.Fuzz(agrees)
}
