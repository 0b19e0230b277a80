package admin_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw/admin"
)

func anybody(*http.Request) error { return nil }

// Every action, against everything that can be wrong with it. A refused action must have no effect.
func TestActionsAreRefused(t *testing.T) {
	orders := map[string]string{
		"why": `{"policy":"p","key":"k"}`, "reset": `{"policy":"p","key":"k"}`,
		"block": `{"policy":"p","key":"k","seconds":60}`, "switch": `{"policy":"p","on":false}`,
	}
	wrong := map[string]struct {
		opts   []admin.Option
		change func(*http.Request)
		status int
	}{
		"no access was configured":    {nil, func(*http.Request) {}, 403},
		"reading is allowed":          {[]admin.Option{admin.WithAuthorizeRead(anybody)}, func(*http.Request) {}, 403},
		"no token":                    {bearer(), func(r *http.Request) { r.Header.Del("Authorization") }, 403},
		"another token":               {bearer(), func(r *http.Request) { r.Header.Set("Authorization", "Bearer x"+token) }, 403},
		"the token as a password":     {bearer(), func(r *http.Request) { r.Header.Set("Authorization", "Basic "+token) }, 403},
		"another site":                {bearer(), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"a sister site":               {bearer(), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 403},
		"another origin, old browser": {bearer(), from("https://evil.example"), 403},
		"a sandboxed page":            {bearer(), from("null"), 403},
		"a form":                      {bearer(), func(r *http.Request) { r.Header.Del("X-Sluice-Admin") }, 403},
		"a form's body":               {bearer(), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 415},
		"no content type":             {bearer(), func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"GET":                         {bearer(), func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"PUT":                         {bearer(), func(r *http.Request) { r.Method = http.MethodPut }, 405},
	}
	for name, c := range wrong {
		for action, body := range orders {
			t.Run(name+"/"+action, func(t *testing.T) {
				limiter := admin.Control(bucket(t, algo.PerHour(5)))
				limiter.Acquire(t.Context(), "k", 2)
				a := newAdmin(t, append(c.opts, admin.WithPolicy("p", limiter))...)
				r := order(action, body)
				c.change(r)
				w := serve(a, r)
				require.Equal(t, c.status, w.Code)
				require.NotEmpty(t, object(t, w)["error"])

				off, _, _ := limiter.SwitchedOff()
				require.False(t, off)
				lease, err := limiter.Acquire(t.Context(), "k", 0)
				require.NoError(t, err)
				require.Equal(t, int64(3), lease.Remaining)
			})
		}
	}
}

func bearer() []admin.Option { return []admin.Option{admin.WithAuthorize(admin.Bearer(token))} }

func from(origin string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", origin)
	}
}

// The hook decides before the body is read, and its reason stays here.
func TestAuthorizeHook(t *testing.T) {
	var log bytes.Buffer
	refusal := errors.New("secret reason " + strings.Repeat("x", 1<<20)) // a header, say
	a, err := admin.New(admin.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), admin.WithPolicy("p", bucket(t, algo.PerHour(1))), admin.WithAuthorize(func(r *http.Request) error {
		if r.Header.Get("X-Operator") != "ada" {
			return refusal
		}
		return nil
	}))
	require.NoError(t, err)
	w := serve(a, order("why", "not JSON"))
	require.Equal(t, 403, w.Code)
	require.NotContains(t, w.Body.String(), "secret")
	require.Contains(t, log.String(), "secret")
	require.Less(t, log.Len(), 1024)

	r := order("why", `{"policy":"p","key":""}`)
	r.Header.Set("X-Operator", "ada")
	require.Equal(t, 200, serve(a, r).Code)
}

// By default this machine may read, and only by a name of its own.
func TestWhoMayRead(t *testing.T) {
	for name, c := range map[string]struct {
		peer, host, proxy string
		status            int
	}{
		"this machine":            {"127.0.0.1:1", "localhost:9090", "", 200},
		"IPv6":                    {"[::1]:1", "[::1]:9090", "", 200},
		"mapped":                  {"[::ffff:127.0.0.1]:1", "127.0.0.1", "", 200},
		"another":                 {"192.0.2.1:1", "localhost:9090", "", 403},
		"a private network":       {"10.0.0.1:1", "localhost:9090", "", 403},
		"a name that points here": {"127.0.0.1:1", "evil.example:9090", "", 403},
		"a foreign localhost":     {"127.0.0.1:1", "localhost.evil.example", "", 403},
		"behind a proxy":          {"127.0.0.1:1", "localhost:9090", "X-Forwarded-For", 403},
		"behind another proxy":    {"127.0.0.1:1", "localhost:9090", "Via", 403},
		"no address":              {"@", "localhost:9090", "", 403},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdmin(t)
			r := local(http.MethodGet, "api/state", "")
			r.RemoteAddr, r.Host = c.peer, c.host
			if c.proxy != "" {
				r.Header.Set(c.proxy, "203.0.113.7")
			}
			w := serve(a, r)
			require.Equal(t, c.status, w.Code)
			if c.status != 200 {
				require.Len(t, object(t, w), 1, "nothing but the refusal")
			}
			require.Equal(t, 200, serve(newAdmin(t, admin.WithAuthorizeRead(anybody)), r).Code)
			denied := newAdmin(t, admin.WithAuthorizeRead(func(*http.Request) error { return errors.New("no") }))
			require.Equal(t, 403, serve(denied, r).Code)

			r.URL.Path = "/main.js"
			require.Equal(t, 200, serve(denied, r).Code, "the page itself is for everybody")
		})
	}
}

func TestBearerWantsALongToken(t *testing.T) {
	require.PanicsWithValue(t, "admin: Bearer: the token has fewer than 16 bytes", func() { admin.Bearer("hunter2") })
}

// Every answer, whatever it is, forbids what the page does not need.
func TestHeadersOfAllAnswers(t *testing.T) {
	a := newAdmin(t)
	for _, r := range []*http.Request{
		local("GET", "", ""), local("GET", "page.css", ""), local("GET", "main.js", ""), local("GET", "icon.svg", ""),
		local("GET", "api/state", ""), local("POST", "api/state", ""), local("GET", "nothing", ""), local("GET", "../admin.go", ""),
		local("GET", "page/main.js", ""), order("why", "{}"), local("DELETE", "", ""),
	} {
		w := serve(a, r)
		h := w.Header()
		csp := h.Get("Content-Security-Policy")
		require.Contains(t, csp, "default-src 'none'")
		require.Contains(t, csp, "frame-ancestors 'none'")
		require.NotContains(t, csp, "unsafe")
		require.NotContains(t, csp, "http")
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "no-store", h.Get("Cache-Control"))
		require.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
		require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
		require.Empty(t, h.Get("Access-Control-Allow-Origin"))
		require.NotEmpty(t, h.Get("Content-Type"))
	}
}

// The page's files are small, name no other host, and hold nothing inline.
func TestFilesOfThePage(t *testing.T) {
	a := newAdmin(t)
	size := 0
	for name, contentType := range map[string]string{
		"": "text/html; charset=utf-8", "page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
		"main.js": "text/javascript; charset=utf-8", "dom.js": "text/javascript; charset=utf-8", "api.js": "text/javascript; charset=utf-8",
		"chart.js": "text/javascript; charset=utf-8", "tables.js": "text/javascript; charset=utf-8",
		"panels.js": "text/javascript; charset=utf-8", "key.js": "text/javascript; charset=utf-8",
	} {
		w := serve(a, local("GET", name, ""))
		require.Equal(t, 200, w.Code, name)
		require.Equal(t, contentType, w.Header().Get("Content-Type"))
		body := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "")
		size += w.Body.Len()
		for _, never := range []string{"://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "onclick=", "style=", "<style", "javascript:"} {
			require.NotContains(t, body, never, name)
		}
	}
	require.Less(t, size, 50<<10)
	require.Contains(t, serve(a, local("GET", "", "")).Body.String(), `<script type="module" src="main.js"></script>`)
}

// All URLs are relative, so it works under any path.
func TestUnderAPath(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/ops/limits/", http.StripPrefix("/ops/limits", newAdmin(t)))
	for path, status := range map[string]int{"ops/limits/": 200, "ops/limits/main.js": 200, "ops/limits/api/state": 200, "ops/limits/x": 404} {
		require.Equal(t, status, serve(mux, local("GET", path, "")).Code, path)
	}
}
