package httpmw_test

import (
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The parser of RateLimit agrees with an independent one on what is a list of
// strings, and on the numbers.
func TestParseLimits(t *testing.T) {
	require.Equal(t, [][2]int64{{0, 7}, {-1, 0}, {3, 0}},
		httpmw.ParseLimits(`"a\"\\";r=x;r=9;t=7;pk=:aGk=:;x=?1;y=tok/en;z="s";d=-1.5;when=@1;v;r=0 , "b";r=2.5,	"c"; r=3`))
	require.Nil(t, httpmw.ParseLimits(strings.Repeat(`"a";r=0,`, 1000)))
	alphabet := []string{`"a"`, `"`, `\`, ";", "r", "t", "=", "0", "17", "-", ".", ",", " ", "\t", ":", "YQ==", "?1", "x", "*", "é", "\x00", `;r=0`, `;t=5`, `, `}
	rapid.Check(t, func(t *rapid.T) {
		field := strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 12).Draw(t, "field"), "")
		got := httpmw.ParseLimits(field)
		list, err := httpsfv.UnmarshalList([]string{field})
		if err != nil {
			require.Empty(t, got, "%q", field)
			return
		}
		var want [][2]int64
		for _, member := range list {
			item, isItem := member.(httpsfv.Item)
			if _, isString := item.Value.(string); !isItem || !isString {
				require.Empty(t, got)
				return
			}
			pair := [2]int64{-1, 0}
			for i, name := range []string{"r", "t"} {
				if v, found := item.Params.Get(name); found {
					if n, isInt := v.(int64); isInt {
						pair[i] = max(n, 0)
					}
				}
			}
			want = append(want, pair)
		}
		require.Equal(t, want, got, "%q", field)
	})
}
