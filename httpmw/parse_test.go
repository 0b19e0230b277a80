package httpmw_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/httpmw"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The wait is that of the limits of which nothing remains. A field that is not
// a list of strings says nothing at all: a part of it may say the opposite of
// the whole.
func TestWaitUntilMore(t *testing.T) {
	for field, want := range map[string]time.Duration{
		`"a";r=0;t=7`:              7 * time.Second,
		`"a";r=0;t=7, "b";r=0;t=9`: 9 * time.Second,
		`"a";r=0;t=7, "b";r=1;t=9`: 7 * time.Second,
		`"a\"\\";r=x;r=0;t=7;pk=:aGk=:;x=?1;y=tok/en;z="s";d=-1.5;when=@1;v;t=8 , "b";r=2.5;t=9,	"c";t=9`: 8 * time.Second,
		`"a";r=-1;t=7`:               7 * time.Second,
		`"a";r=0;t=-7`:               0,
		`"a";r=0`:                    0,
		`"a";t=7`:                    0,
		`"a";r=0.0;t=7`:              0,
		`"a";r;t=7`:                  0,
		`"a";r=0;t=999999999999999`:  time.Hour,
		`"a";r=0;t=9999999999999999`: 0,
		`a;r=0;t=7`:                  0,
		`("a");r=0;t=7`:              0,
		`"a";r=0;t=7, b;r=1`:         0,
		`"a";r=0;t=7,`:               0,
		`"a;r=0;t=7`:                 0,
		`"é";r=0;t=7`:                0,
		"":                           0,
		strings.Repeat(`"a";r=0;t=7,`, 1000) + `"a"`: 0,
	} {
		require.Equal(t, want, httpmw.WaitUntilMore(field), "%.80q", field)
	}
}

func TestS3_WaitUntilMore(t *testing.T) {
	alphabet := []string{`"a"`, `"`, `\`, ";", "r", "t", "=", "0", "17", "-", ".", ",", " ", "\t", ":", "YQ==", "?1", "x", "*", "é", "\x00", `;r=0`, `;t=5`, `, `, "(", ")", "@", "%"}
	rapid.Check(t, func(t *rapid.T) {
		field := strings.Join(rapid.SliceOfN(rapid.SampledFrom(alphabet), 0, 12).Draw(t, "field"), "")
		d := httpmw.WaitUntilMore(field)
		require.True(t, 0 <= d && d <= time.Hour)
	})
}
