package admin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/keyfunc"
)

// Package httpmw wraps the response writer where a slot is held to the end of
// the connection, and only there. It recognizes a slot behind Control too.
func TestControlledSlotIsRecognized(t *testing.T) {
	wraps := func(l algo.Limiter) bool {
		var got http.ResponseWriter
		w := httptest.NewRecorder()
		h := httpmw.Limit(l, keyfunc.Global())(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { got = w }))
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return got != http.ResponseWriter(w)
	}
	slots := algo.Must(adaptive.New(adaptive.Fixed(2)))
	require.False(t, wraps(admin.Control(bucket(t, algo.PerSecond(5)))))
	require.True(t, wraps(admin.Control(slots)))
	require.True(t, wraps(algo.All(bucket(t, algo.PerSecond(5)), admin.Control(slots))))
}

func TestControlledTakesASpec(t *testing.T) {
	l := bucket(t, algo.PerSecond(5))
	require.NoError(t, algo.Spec{Rate: algo.PerSecond(7)}.Apply(admin.Control(l)))
	d := algo.About(l)
	require.EqualValues(t, 7, d.Quota)
}
