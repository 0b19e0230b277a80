package class_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/class"
)

func TestParseField(t *testing.T) {
	for field, want := range map[string]class.Class{
		"u=0": class.Critical, "u=1, i": class.High, "u=2": class.High, "u=3": class.Normal, "i, u=4": class.Low,
		"u=5;x=1": class.Low, "u=6": class.Sheddable, "u=7": class.Sheddable,
	} {
		got, ok := class.ParseField([]string{field})
		require.True(t, ok, field)
		require.Equal(t, want, got, field)
	}
	for _, field := range []string{"", "i", "u", "u=8", "u=-1", "u=0.5", "u=\"0\"", "u=(0)", "u=0, u=x", "x=\"u=0\", u=0", "\x00", strings.Repeat("a, ", 200) + "u=0"} {
		got, ok := class.ParseField([]string{field})
		require.False(t, ok, field)
		require.Equal(t, class.Normal, got, field)
	}
	_, ok := class.ParseField(nil)
	require.False(t, ok)
	got, _ := class.ParseField([]string{"u=7", "u=0"})
	require.Equal(t, class.Critical, got, "the last one counts, as in RFC 9651")
}

// TestFieldThereAndBack: a class reaches the next service as it is.
func TestFieldThereAndBack(t *testing.T) {
	for c := class.Critical; c < class.Count; c++ {
		got, ok := class.ParseField([]string{c.Field()})
		require.True(t, ok)
		require.Equal(t, c, got)
		require.Equal(t, c, class.From(class.With(context.Background(), c)))
	}
	_, ok := class.Lookup(context.Background())
	require.False(t, ok)
}

func FuzzS3_ParseField(f *testing.F) {
	f.Add("u=3, i")
	f.Fuzz(func(t *testing.T, field string) {
		if c, _ := class.ParseField([]string{field}); c >= class.Count {
			t.Fatal(c)
		}
	})
}
