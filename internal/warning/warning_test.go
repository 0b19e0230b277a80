package warning_test

import (
	"bytes"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/warning"
)

func TestOnce(t *testing.T) {
	var out bytes.Buffer
	flags := log.Flags()
	defer log.SetFlags(flags)
	defer log.SetOutput(log.Writer())
	log.SetOutput(&out)
	log.SetFlags(0)
	w := &warning.Once{Code: "a.b", Message: "something is wrong: mend it"}
	for range 3 {
		w.Log("policy=p")
		require.False(t, w.Pending())
	}
	w.Reset()
	require.True(t, w.Pending())
	w.Log("")
	require.Equal(t, "something is wrong: mend it: code=a.b policy=p\nsomething is wrong: mend it: code=a.b\n", out.String())
}
