package ops

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
)

// Readiness says whether new work is welcome. The zero value says no.
type Readiness struct{ ready atomic.Bool }

// Set changes it.
func (r *Readiness) Set(ready bool) { r.ready.Store(ready) }

// Handlers are served at the second address, except nil ones.
type Handlers struct {
	Ready   *Readiness
	Status  func() any   // the content of /status, as JSON
	Metrics http.Handler // at /metrics
	Page    http.Handler // at /, for the admin page
}

// Mux puts the handlers where they belong:
//
//	/healthz  the process is alive: always 200
//	/readyz   new requests are welcome: 200, or 503 while it starts and stops
//	/status   the configuration in force, and the mistakes of the file
//	/metrics  for Prometheus
//	/         the admin page
func Mux(h Handlers) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !h.Ready.ready.Load() {
			say(w, http.StatusServiceUnavailable, "not ready")
			return
		}
		say(w, http.StatusOK, "ready")
	})
	if h.Status != nil {
		mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { asJSON(w, h.Status()) })
	}
	if h.Metrics != nil {
		mux.Handle("GET /metrics", h.Metrics)
	}
	if h.Page != nil {
		mux.Handle("/", h.Page)
	}
	return mux
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) // a probe that is gone needs no answer
}

func asJSON(w http.ResponseWriter, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(body, '\n')) // as above
}
