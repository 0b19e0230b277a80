package command

import (
	"bytes"
	"log"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWarningsOfTheLibrary: a line with a code is a warning with attributes, any other line a warning
// as it is.
func TestWarningsOfTheLibrary(t *testing.T) {
	var out bytes.Buffer
	flags, to, before := log.Flags(), log.Writer(), slog.Default()
	t.Cleanup(func() { slog.SetDefault(before); log.SetFlags(flags); log.SetOutput(to) })
	useLog(&out)
	log.Print("algo: the table of a limiter is full: raise MaxKeys, or find the client: code=algo.full overflowed=7")
	log.Print("httpmw: cannot decide on requests: code=httpmw.undecided policy=p error=\"no \\\"key\\\"\"")
	log.Print("something else")
	require.Regexp(t, `level=WARN msg="algo: the table of a limiter is full" code=algo.full overflowed=7 do="raise MaxKeys, or find the client"
.*level=WARN msg="httpmw: cannot decide on requests" code=httpmw.undecided policy=p error="no \\"key\\""
.*level=WARN msg="something else"`, out.String())
}
