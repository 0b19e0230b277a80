package main

import (
	"testing"
	"testing/synctest"
)

// inVirtualTime runs f, and ends the program. Functions that f passes to bubble
// run in virtual time, where sleeping takes no time. testing/synctest needs a
// test, so f runs as the only one.
func inVirtualTime(f func(bubble func(func())) error) {
	all := func(string, string) (bool, error) { return true, nil }
	testing.Main(all, []testing.InternalTest{{
		Name: "shapes",
		F: func(t *testing.T) {
			err := f(func(inside func()) {
				synctest.Test(t, func(*testing.T) { inside() })
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	}}, nil, nil)
}
