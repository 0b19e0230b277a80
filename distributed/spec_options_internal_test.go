package distributed

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

// TestNoOptionIsIgnored: each option of a limit in this process changes the limit on Redis, or is
// an error. Keys and deny-new concern the decisions without Redis.
func TestNoOptionIsIgnored(t *testing.T) {
	options := map[string]string{
		"burst": "burst 7", "wait": "wait 3s", "queue": "queue 2", "slack": "slack 2", "delay": "delay 1",
		"nodelay": "nodelay", "warmup": "warmup 3s", "cold": "cold 2", "cells": "cells 2", "offset": "offset 1s",
		"aligned": "aligned 2026-01-31T00:00:00Z", "zone": "zone Europe/Berlin", "start": "start 3", "spread": "spread",
	}
	var tags []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[algo.Spec]()) {
		if f.IsExported() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			tags = append(tags, name)
		}
	}
	require.ElementsMatch(t, tags, slices.AppendSeq([]string{"algorithm", "rate", "keys", "deny-new"}, maps.Keys(options)),
		"add a text with the new option to the list above")

	for kind := range kinds {
		for name, text := range options {
			base := kind + " 5/day"
			if name == "start" {
				base = kind + " 5/month zone UTC"
			}
			bare := base
			if kind == "smooth-warming-up" {
				bare += " warmup 1m" // it has no form without
				if name != "warmup" {
					base = bare
				}
			}
			with, err := algo.Parse(base + " " + text)
			if err != nil {
				continue // the algorithm does not have the option
			}
			limit, err := newLimit(&with)
			if err != nil {
				require.ErrorContains(t, err, "does not take", "%s %s", base, text)
				continue
			}
			without, err := algo.Parse(bare)
			require.NoError(t, err)
			plain, err := newLimit(&without)
			require.NoError(t, err)
			require.NotEqual(t, plain, limit, "%s ignores the option %q", kind, text)
		}
	}
}
