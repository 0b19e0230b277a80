package sluice_test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPicturesAreLegible: what pages show follows the reader's color scheme, has no serifs, and on
// a phone of 390 pixels text of 9.5 pixels or more that is nowhere cut off.
func TestPicturesAreLegible(t *testing.T) {
	const room = 342 // pixels between the margins of the page
	label := regexp.MustCompile(`<text x="([\d.-]+)" y="[\d.-]+" transform="scale\(1, -1\)"\s+style="[^"]*font-size:([\d.]+)px">([^<]*)<`)
	for path := range pictures(t) {
		svg := read(t, path)
		require.Contains(t, svg, "prefers-color-scheme: dark", path)
		require.Contains(t, svg, "sans-serif", path)
		require.NotContains(t, svg, "Serif", path)
		wide := number(t, regexp.MustCompile(`viewBox="0 0 ([\d.]+) `).FindStringSubmatch(svg)[1])
		labels := label.FindAllStringSubmatch(regexp.MustCompile(`(?s)<g transform="rotate.*?</g>`).ReplaceAllString(svg, ""), -1)
		require.Greater(t, len(labels), 4, path)
		for _, m := range labels {
			x, size := number(t, m[1]), number(t, m[2])
			require.GreaterOrEqual(t, size*min(4.0/3, room/wide), 9.5, "%s: %q is too small", path, m[3])
			require.True(t, x >= 0 && x+.5*size*float64(len(strings.TrimSpace(m[3]))) <= wide, "%s: %q is cut off", path, m[3])
		}
	}
}

// pictures are the drawings that the README and the pages of docs show.
func pictures(t *testing.T) map[string]bool {
	shown := map[string]bool{}
	files(t, "docs", func(page string) { note(t, shown, page) })
	note(t, shown, "README.md")
	require.Greater(t, len(shown), 12)
	return shown
}

func note(t *testing.T, shown map[string]bool, page string) {
	if strings.HasSuffix(page, ".md") {
		for _, m := range regexp.MustCompile(`\]\(([^)]+\.svg)\)`).FindAllStringSubmatch(read(t, page), -1) {
			shown[filepath.Join(filepath.Dir(page), m[1])] = true
		}
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(s, 64)
	require.NoError(t, err)
	return n
}

// TestPicturesAreShown: no page has lost its picture, and no picture its page.
func TestPicturesAreShown(t *testing.T) {
	text := strings.Builder{}
	files(t, ".", func(path string) {
		if strings.HasSuffix(path, ".md") {
			text.WriteString(read(t, path))
		}
	})
	files(t, "docs", func(path string) {
		if strings.HasSuffix(path, ".svg") || strings.HasSuffix(path, ".png") {
			require.True(t, strings.Contains(text.String(), filepath.Base(path)), "no page shows %s", path)
		}
	})
}
