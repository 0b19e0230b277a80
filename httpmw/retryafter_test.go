package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

// TestRetryAfterIsTheCeiling: Retry-After is the milliseconds beside it in seconds, rounded up.
func TestRetryAfterIsTheCeiling(t *testing.T) {
	for i := range 2000 {
		wait := time.Duration(i+1) * 7 * time.Millisecond
		d := algo.Decision{Reason: algo.Quota, Limit: 5, RetryAfter: wait, NextAfter: wait, ResetAfter: 3 * wait}
		w := httptest.NewRecorder()
		httpmw.Limit(&scripted{decision: d}, key("k"))(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		ms, err := strconv.ParseInt(w.Header().Get("Retry-After-Ms"), 10, 64)
		require.NoError(t, err)
		require.GreaterOrEqual(t, ms, wait.Milliseconds())
		require.Equal(t, strconv.FormatInt((ms+999)/1000, 10), w.Header().Get("Retry-After"), "%d ms", ms)
	}
}
