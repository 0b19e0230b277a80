package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// The response writer is watched where a place in flight hangs on the end of
// the connection, and handed on as it is elsewhere, whatever stands around the
// limiter.
func TestWriterIsWatchedForSlotsOnly(t *testing.T) {
	for name, wrap := range map[string]func(algo.Limiter) algo.Limiter{
		"itself": func(l algo.Limiter) algo.Limiter { return l },
		"switch": func(l algo.Limiter) algo.Limiter { return algo.NewSwitch(l) },
		"shadow": algo.Shadow,
		"all":    func(l algo.Limiter) algo.Limiter { return algo.All(bucket(t, algo.PerSecond(5)), algo.Shadow(l)) },
	} {
		watched := func(l algo.Limiter) bool {
			var got http.ResponseWriter
			w := httptest.NewRecorder()
			httpmw.Limit(wrap(l), key("k"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w })).ServeHTTP(w, get())
			return got != http.ResponseWriter(w)
		}
		require.False(t, watched(bucket(t, algo.PerSecond(5))), name)
		require.True(t, watched(newSlots(2)), name)
	}
}
