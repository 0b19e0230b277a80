package warning_test

import (
	"bytes"
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/warning"
)

var line = warning.Line{Code: "a.b", Message: "something is wrong", Do: "mend it"}

func TestOnce(t *testing.T) {
	out := logged(t)
	w := &warning.Once{Line: line}
	for range 3 {
		w.Log("policy", "p", "error", `no "key" = 1`)
		require.False(t, w.Pending())
	}
	w.Reset()
	require.True(t, w.Pending())
	w.Log()
	require.Equal(t, `something is wrong: mend it: code=a.b policy=p error="no \"key\" = 1"
something is wrong: mend it: code=a.b
`, out.String())
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := logged(t)
		var p warning.Pause
		for range 150 {
			if p.Over(time.Minute) {
				line.Print("n", "1")
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, strings.Repeat("something is wrong: mend it: code=a.b n=1\n", 3), lines.String())
	})
}

// logged returns the output of package log during the test.
func logged(t *testing.T) *bytes.Buffer {
	out, flags, before := new(bytes.Buffer), log.Flags(), log.Writer()
	t.Cleanup(func() {
		log.SetOutput(before)
		log.SetFlags(flags)
	})
	log.SetOutput(out)
	log.SetFlags(0)
	return out
}
