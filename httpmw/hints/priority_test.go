package hints_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/httpmw/hints"
)

func trustedGateway(r *http.Request) bool { return r.Header.Get("X-Gateway") == "yes" }

// TestPriority: the class of a trusted caller, and of no other, reaches the
// handler and the next service.
func TestPriority(t *testing.T) {
	var got adaptive.Class
	backend := httptest.NewServer(hints.Priority(func(*http.Request) bool { return true })(
		http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = adaptive.ClassFrom(r.Context()) })))
	defer backend.Close()
	client := &http.Client{Transport: hints.PriorityTransport(nil)}
	defer client.CloseIdleConnections()
	front := hints.Priority(trustedGateway)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), http.MethodGet, backend.URL, http.NoBody)
		require.NoError(t, err)
		resp, err := client.Do(out)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Empty(t, out.Header, "the caller's request is not changed")
	}))
	for _, c := range []struct {
		field, gateway string
		want           adaptive.Class
	}{
		{"u=0", "yes", adaptive.Critical},
		{"u=7, i", "yes", adaptive.Sheddable},
		{"u=0", "no", adaptive.Normal},
		{"u=9", "yes", adaptive.Normal},
		{"\"", "yes", adaptive.Normal},
		{"", "yes", adaptive.Normal},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("X-Gateway", c.gateway)
		if c.field != "" {
			r.Header.Set("Priority", c.field)
		}
		front.ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, c.want, got, "%+v", c)
	}
}

// TestPriorityStatedByTheCaller: a field that a program sets itself is sent as it is.
func TestPriorityStatedByTheCaller(t *testing.T) {
	var got []string
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		got = r.Header["Priority"]
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	})
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r = r.WithContext(adaptive.WithClass(context.Background(), adaptive.Low))
	send := func() {
		resp, err := hints.PriorityTransport(base).RoundTrip(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	send()
	require.Equal(t, []string{"u=5"}, got)
	r.Header.Set("Priority", "u=1")
	send()
	require.Equal(t, []string{"u=1"}, got)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPriorityWiring(t *testing.T) {
	require.PanicsWithValue(t, "hints: Priority: the function is nil", func() { hints.Priority(nil) })
}

// A gateway states the class of a request. Under overload a limiter with
// adaptive.WithPriorities denies the less urgent ones first.
func ExamplePriority() {
	fromGateway := func(r *http.Request) bool { return r.RemoteAddr == "192.0.2.1:1234" }
	handler := hints.Priority(fromGateway)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(adaptive.ClassFrom(r.Context()))
	}))
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Priority", "u=1, i")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output: high
}

// A call to another service carries the class on.
func ExamplePriorityTransport() {
	backend := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Header.Get("Priority"))
	}))
	defer backend.Close()
	client := &http.Client{Transport: hints.PriorityTransport(nil)}
	defer client.CloseIdleConnections()
	ctx := adaptive.WithClass(context.Background(), adaptive.Sheddable)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, backend.URL, http.NoBody)
	if err != nil {
		return
	}
	resp, err := client.Do(r)
	if err != nil {
		return
	}
	_ = resp.Body.Close()
	// Output: u=7
}
