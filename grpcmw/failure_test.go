package grpcmw_test

import (
	"bytes"
	"errors"
	"log"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// An operator reads why calls cannot be decided, once in a while and not for
// each; the clients never do.
func TestFailuresAreLogged(t *testing.T) {
	var out bytes.Buffer
	defer log.SetOutput(log.Writer())
	log.SetOutput(&out)
	for name, policy := range map[string]grpcmw.FailPolicy{"closed": grpcmw.FailClosed, "open": grpcmw.FailOpen} {
		grpcmw.ResetWarnings()
		out.Reset()
		i := grpcmw.UnaryServerInterceptor(failing(errors.New("dial: \"refused\"\nby peer")), rpckey.Global(),
			grpcmw.WithName(name), grpcmw.WithOnError(policy))
		for range 10 {
			intercept(t.Context(), i)
		}
		require.Equal(t, 1, strings.Count(out.String(), "\n"), out.String())
		require.Contains(t, out.String(), `code=grpcmw.undecided policy=`+name+` error="dial: \"refused\"\nby peer"`)
	}
}
