package guides_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// TestExposedFields: the clients guide names for browsers the fields that a denial has, except those
// that pages read anyway (Fetch, 3.3.2) or do not need.
func TestExposedFields(t *testing.T) {
	guide, err := os.ReadFile("clients.md")
	require.NoError(t, err)
	sentence := regexp.MustCompile(`(?s)Expose the fields that pages may read: (.*?)\.\n`).FindSubmatch(guide)
	require.NotNil(t, sentence)
	var named []string
	for _, name := range regexp.MustCompile("`([^`]+)`").FindAllSubmatch(sentence[1], -1) {
		named = append(named, http.CanonicalHeaderKey(string(name[1])))
	}
	l := algo.Must(algo.NewTokenBucket(algo.PerHour(1)))
	h := httpmw.Limit(l, keyfunc.Global())(http.NotFoundHandler())
	var sent []string
	for range 2 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		sent = nil
		for name := range w.Header() {
			if !slices.Contains([]string{"Cache-Control", "Content-Type", "X-Content-Type-Options"}, name) {
				sent = append(sent, name)
			}
		}
	}
	require.ElementsMatch(t, sent, named)
}
