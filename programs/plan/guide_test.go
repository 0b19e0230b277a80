package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/programs/plan/report"
)

// TestGuide: the commands of the guide give its output.
func TestGuide(t *testing.T) {
	if cases.Race || testing.Short() {
		t.Skip("a million lines")
	}
	page, err := os.ReadFile("../../docs/guides/limits.md")
	require.NoError(t, err)
	commands := regexp.MustCompile("(?s)\ngo run ./genlog >shop.log[^\n]*\ngo run \\. (.*?) shop.log\n```").FindStringSubmatch(string(page))
	require.NotNil(t, commands)
	var args []string
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(commands[1], -1) {
		args = append(args, m[1]+m[2])
	}
	log, err := exec.Command("go", "run", "./genlog").Output()
	require.NoError(t, err)
	require.Equal(t, 1_000_000, bytes.Count(log, []byte("\n")))

	var out bytes.Buffer
	_, err = run(t.Context(), append(args, "-"), bytes.NewReader(log), &out, &bytes.Buffer{})
	require.NoError(t, err)
	require.Contains(t, string(page), "```\n"+trimmed(out.String())+"```\n")

	// The limit with the mark, on trial, denies the keys that it names, and no other.
	out.Reset()
	_, err = run(t.Context(), []string{"-q", "-field", "duration=extra1", "-rates", "10/min", "-quotas", "none", "-limit", "10/min burst 36", "-json", "-", "-"}, bytes.NewReader(log), &out, &bytes.Buffer{})
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &r))
	one := r.Tracks[0]
	require.EqualValues(t, 28, one.Limits[0].KeysDenied)
	require.EqualValues(t, 30_022-28, one.Suggestions[0].Keys)
	require.Equal(t, "10/min burst 36", one.Limits[0].Suggested)

	out.Reset()
	_, err = run(t.Context(), append(args, "-limit", "1/s burst 25", "-where", "agent~^python", "-cover", "80", "-"), bytes.NewReader(log), &out, &bytes.Buffer{})
	require.NoError(t, err)
	require.Contains(t, out.String(), "requests of 10 keys", "the scraper, the loop and eight partners")
}

// trimmed drops the spaces at the ends of lines.
func trimmed(text string) string { return regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, "") }

// TestFlags: the flags that the guide and the README name exist.
func TestFlags(t *testing.T) {
	var help bytes.Buffer
	_, err := parse([]string{"-h"}, &help)
	require.Error(t, err)
	found := 0
	for _, page := range []string{"../../docs/guides/limits.md", "README.md"} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile("(?m)[` ](-[a-z][a-z0-9-]+)[` ]").FindAllStringSubmatch(string(text), -1) {
			if m[1] == "-format" || m[1] == "-users" || m[1] == "-lines" || m[1] == "-config" || m[1] == "-check" {
				continue // of genlog, and of the gateway
			}
			found++
			require.True(t, strings.Contains(help.String(), "\n  "+m[1]+" ") || strings.Contains(help.String(), "\n  "+m[1]+"\n"), "%s: %s", page, m[1])
		}
	}
	require.Greater(t, found, 20)
}
