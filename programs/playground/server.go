package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"time"
)

//go:embed page
var files embed.FS

// contentPolicy lets the page use its own files and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// playground is the page and its contents.
type playground struct {
	race     *race
	overload *overload
	panel    *panel
	audience audience
}

func newPlayground() (*playground, error) {
	panel, err := newPanel()
	if err != nil {
		return nil, err
	}
	r, err := newRace(panel.Observe)
	if err != nil {
		return nil, err
	}
	panel.lanes = r.lanes
	o, err := newOverload(panel)
	if err != nil {
		return nil, err
	}
	p := &playground{race: r, overload: o, panel: panel}
	p.audience.run = p.run
	return p, nil
}

// Close ends what runs. Pages that still watch must be gone by then.
func (p *playground) Close() error { return p.overload.Close() }

// handler serves the page to this machine, or to requests with an address and no
// name: a web site could point a name of its own here.
func (p *playground) handler() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name is wrong above
	}
	static := http.FileServerFS(page)
	mux := http.NewServeMux()
	for _, name := range []string{"/{$}", "/style.css", "/app.js", "/overload.js", "/icon.svg"} {
		mux.Handle("GET "+name, static)
	}
	mux.HandleFunc("GET /events", p.events)
	mux.HandleFunc("POST /settings", func(w http.ResponseWriter, r *http.Request) { obey(w, r, p.race.choose) })
	mux.HandleFunc("POST /reset", func(w http.ResponseWriter, r *http.Request) {
		obey(w, r, func(struct{}) error { p.race.reset(); return nil })
	})
	mux.HandleFunc("POST /overload", func(w http.ResponseWriter, r *http.Request) {
		obey(w, r, func(o order) error {
			return p.audience.during(func() error { return p.overload.obey(o) })
		})
	})
	mux.Handle("/admin/", http.StripPrefix("/admin", p.panel))
	return guard(http.NewCrossOriginProtection().Handler(mux))
}

func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if !byAddress(r.Host) {
			http.Error(w, "this page is served under an address or localhost only", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func byAddress(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost"
}

const mostBody = 1 << 10

// obey hands the JSON of the request to do. Texts of the request are not sent
// back.
func obey[T any](w http.ResponseWriter, r *http.Request, do func(T) error) {
	var v T
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	d.DisallowUnknownFields()
	if r.Header.Get("Content-Type") != "application/json" || d.Decode(&v) != nil {
		http.Error(w, "want a JSON object with known fields", http.StatusBadRequest)
		return
	}
	if err := do(v); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// choose is set, or the preset of a load if that is all that is given.
func (r *race) choose(s settings) error {
	if s == (settings{Load: s.Load}) {
		s = preset(s.Load)
	}
	return r.set(s)
}

// frameEvery is the time between frames.
const frameEvery = 200 * time.Millisecond

// events streams what there is to see, first what does not change.
func (p *playground) events(w http.ResponseWriter, r *http.Request) {
	leave, err := p.audience.enter()
	if err != nil {
		w.Header().Set("Retry-After", "10")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	if send(w, "hello", p.hello()) != nil {
		return
	}
	ticker := time.NewTicker(frameEvery)
	defer ticker.Stop()
	var seen position
	for {
		var f frame
		f, seen = p.frame(seen)
		if send(w, "frame", f) != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// slowPage is how long a page may take to read a frame.
const slowPage = 10 * time.Second

func send(w http.ResponseWriter, event string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c := http.NewResponseController(w)
	if err := c.SetWriteDeadline(time.Now().Add(slowPage)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, data); err != nil {
		return err
	}
	return c.Flush()
}
