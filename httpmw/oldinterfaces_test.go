package httpmw_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sluice-go/sluice/httpmw"
	"github.com/stretchr/testify/require"
)

// Handlers that still ask for http.CloseNotifier, and http.Pusher, reach the
// server through the wrapper.
func TestOldInterfaces(t *testing.T) {
	base := &old{ResponseRecorder: httptest.NewRecorder(), notes: make(chan bool)}
	w := httpmw.Watch(base)
	require.Equal(t, (<-chan bool)(base.notes), w.(http.CloseNotifier).CloseNotify())
	require.ErrorIs(t, w.(http.Pusher).Push("/x", nil), http.ErrNotSupported)
	require.Equal(t, "/x", base.pushed)
}

type old struct {
	*httptest.ResponseRecorder
	notes  chan bool
	pushed string
}

func (o *old) CloseNotify() <-chan bool { return o.notes }

func (o *old) Push(target string, _ *http.PushOptions) error {
	o.pushed = target
	return http.ErrNotSupported
}
