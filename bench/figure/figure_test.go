package figure_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/sluice-go/sluice/bench/figure"
)

// TestEveryColorHasOneInTheDark: every color of a picture has another value on dark pages, and
// its text uses common fonts.
func TestEveryColorHasOneInTheDark(t *testing.T) {
	p := figure.New("Title", "x", "y")
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}})
	require.NoError(t, err)
	line.Color = figure.Violet
	p.Add(line)
	path := filepath.Join(t.TempDir(), "a.svg")
	require.NoError(t, figure.Stack(path, 5*vg.Centimeter, p, p))

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	rules := regexp.MustCompile(`(?s)<style>@media \(prefers-color-scheme: dark\) .*</style>`).FindString(string(text))
	require.NotEmpty(t, rules)
	used := regexp.MustCompile(`style="[^"]*?((?:fill|stroke):#[0-9A-F]{6})`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(used), 5)
	for _, u := range used {
		require.Contains(t, rules, `"`+u[1]+`"`)
	}
	require.Contains(t, string(text), "Arial,Helvetica,sans-serif")
	require.NotContains(t, string(text), "Serif")
}

func TestNoPictureWithoutItsFolder(t *testing.T) {
	require.Error(t, figure.Stack(filepath.Join(t.TempDir(), "none", "a.svg"), vg.Centimeter, figure.New("", "", "")))
}
