package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSelf: the burst over the page's own interface; run itself fails where the
// counts are not what the limits allow.
func TestSelf(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), &out, []string{"-exit", "-http", "127.0.0.1:0"}))
	for _, a := range algorithms {
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(a.Title)+` +\d`, out.String())
	}
}

func TestSane(t *testing.T) {
	s := settings{"burst", 30, 1, 20, 20}
	good := totals{Asked: 80, AtOnce: 30, Delayed: 10, Denied: 40, InFlight: 20}
	require.NoError(t, good.sane("token-bucket", s, time.Second))
	require.NoError(t, good.sane("in-flight", s, time.Second))
	for want, bad := range map[string]totals{
		"errors":          {Asked: 1, Failed: 1},
		"answered 79":     {Asked: 80, AtOnce: 39, Denied: 40},
		"0 were denied":   {Asked: 80, AtOnce: 80},
		"90 passed":       {Asked: 100, AtOnce: 90, Denied: 10},
		"0 passed and 40": {Asked: 40, Denied: 40},
	} {
		require.ErrorContains(t, bad.sane("token-bucket", s, time.Second), want)
	}
	require.ErrorContains(t, totals{Asked: 2, AtOnce: 1, Denied: 1, InFlight: 21}.sane("in-flight", s, time.Second), "21 in flight")
}

func TestBadArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"missing port in address":   {"-http", "nonsense"},
		"flag provided but not def": {"-port", "80"},
		"unexpected argument":       {"now"},
		"rate is out of range":      {"-clients", "http://127.0.0.1:1", "-rate", "0"},
	} {
		var out bytes.Buffer
		require.ErrorContains(t, run(context.Background(), &out, args), want)
		require.Empty(t, out.String())
	}
}

// serve returns the URL of a playground.
func serve(t *testing.T) (*playground, string) {
	p, err := newPlayground()
	require.NoError(t, err)
	s := httptest.NewServer(p.handler())
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
		require.NoError(t, p.Close())
	})
	return p, s.URL
}

func ask(t *testing.T, method, url, body string, fields ...string) (*http.Response, string) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "Host" {
			r.Host = fields[i+1]
		}
		r.Header.Set(fields[i], fields[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response, string(text)
}

func TestPage(t *testing.T) {
	_, url := serve(t)
	for path, contentType := range map[string]string{
		"/": "text/html", "/style.css": "text/css", "/app.js": "text/javascript",
		"/overload.js": "text/javascript", "/icon.svg": "image/svg+xml",
	} {
		response, body := ask(t, http.MethodGet, url+path, "")
		require.Equal(t, http.StatusOK, response.StatusCode, path)
		require.Contains(t, response.Header.Get("Content-Type"), contentType)
		require.Contains(t, response.Header.Get("Content-Security-Policy"), "default-src 'none'")
		require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
		// What the policy would block, what needs the network, and what could
		// turn text into markup.
		require.NotRegexp(t, `<script>|<style|style="| on[a-z]+="`, body, path)
		require.NotRegexp(t, `https?://`, strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), path)
		require.NotRegexp(t, `innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|\.cssText`, body, path)
	}
	response, _ := ask(t, http.MethodGet, url+"/main.go", "")
	require.Equal(t, http.StatusNotFound, response.StatusCode)
}

// TestElements: what the scripts look for is on the page.
func TestElements(t *testing.T) {
	html, err := files.ReadFile("page/index.html")
	require.NoError(t, err)
	found := 0
	for _, name := range []string{"app.js", "overload.js"} {
		script, err := files.ReadFile("page/" + name)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`\$\("([a-z-]+)"\)`).FindAllSubmatch(script, -1) {
			require.Contains(t, string(html), `id="`+string(m[1])+`"`)
			found++
		}
	}
	require.Greater(t, found, 15)
}

func TestOnlyByAddress(t *testing.T) {
	_, url := serve(t)
	for host, status := range map[string]int{
		"evil.example": http.StatusMisdirectedRequest, "evil.example:8088": http.StatusMisdirectedRequest,
		"localhost:8088": http.StatusOK, "[::1]:8088": http.StatusOK, "127.0.0.1": http.StatusOK,
	} {
		response, _ := ask(t, http.MethodGet, url+"/", "", "Host", host)
		require.Equal(t, status, response.StatusCode, host)
	}
	response, _ := ask(t, http.MethodPost, url+"/reset", "{}", "Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, response.StatusCode)
}

func TestOrders(t *testing.T) {
	p, url := serve(t)
	response, _ := ask(t, http.MethodPost, url+"/settings", `{"load":"users"}`)
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	require.Equal(t, preset("users"), p.race.settings)
	response, _ = ask(t, http.MethodPost, url+"/settings", `{"load":"spike","rate":1,"users":2,"limit":3,"burst":4}`)
	require.Equal(t, http.StatusNoContent, response.StatusCode)
	require.Equal(t, settings{"spike", 1, 2, 3, 4}, p.race.settings)
	response, _ = ask(t, http.MethodPost, url+"/reset", `{}`)
	require.Equal(t, http.StatusNoContent, response.StatusCode)

	const markup = `<img src=x onerror=alert(1)>`
	for _, bad := range [][2]string{
		{"/settings", `{"load":"` + markup + `"}`},
		{"/settings", `{"` + markup + `":1}`},
		{"/settings", `{"load":"burst","rate":1000000,"users":1,"limit":1,"burst":1}`},
		{"/settings", markup}, {"/settings", ``}, {"/settings", `{"load":"` + strings.Repeat("x", mostBody) + `"}`},
		{"/overload", `{"running":true,"strategy":"` + markup + `","load":200}`},
		{"/overload", `{"running":true,"strategy":"none","load":10000}`},
		{"/reset", markup},
	} {
		response, body := ask(t, http.MethodPost, url+bad[0], bad[1])
		require.Equal(t, http.StatusBadRequest, response.StatusCode, bad)
		require.Contains(t, response.Header.Get("Content-Type"), "text/plain")
		require.NotContains(t, body, "<")
	}
	response, _ = ask(t, http.MethodPost, url+"/settings", `{"load":"burst"}`, "Content-Type", "text/plain")
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	require.Equal(t, settings{"spike", 1, 2, 3, 4}, p.race.settings)
}

func TestEvents(t *testing.T) {
	_, url := serve(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	response, err := stream(ctx, http.DefaultClient, url+"/events")
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	seen := 0
	require.NoError(t, frames(response.Body, func(f frame) bool {
		require.Len(t, f.Lanes, len(algorithms))
		for _, l := range f.Lanes {
			require.Len(t, l.Columns, 3*len(f.Offered))
		}
		seen += len(f.Offered)
		return seen < 5
	}))
	for range mostWatchers - 1 {
		another, err := stream(ctx, http.DefaultClient, url+"/events")
		require.NoError(t, err)
		defer another.Body.Close()
		require.Equal(t, http.StatusOK, another.StatusCode)
	}
	full, _ := ask(t, http.MethodGet, url+"/events", "")
	require.Equal(t, http.StatusServiceUnavailable, full.StatusCode)
	require.NotEmpty(t, full.Header.Get("Retry-After"))
}

// TestAdmin: the admin page has the limiters, and can act upon them.
func TestAdmin(t *testing.T) {
	p, url := serve(t)
	response, body := ask(t, http.MethodGet, url+"/admin/", "")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.Contains(t, body, "<html")
	_, body = ask(t, http.MethodGet, url+"/admin/api/state", "")
	for _, a := range algorithms {
		require.Contains(t, body, `"`+a.Name+`"`)
	}
	require.NoError(t, p.overload.obey(order{false, "bbr", 100}))
	_, body = ask(t, http.MethodGet, url+"/admin/api/state", "")
	require.Contains(t, body, `"bbr"`)

	response, body = ask(t, http.MethodPost, url+"/admin/api/block",
		`{"policy":"token-bucket","key":"user-0","seconds":60,"unseen":true}`, "X-Sluice-Admin", "1")
	require.Equal(t, http.StatusOK, response.StatusCode, body)
	lease, err := p.race.lanes[0].asked.Acquire(context.Background(), "user-0", 1)
	require.NoError(t, err)
	require.False(t, lease.Allowed)
	lease, err = p.race.lanes[0].asked.Acquire(context.Background(), "user-1", 1)
	require.NoError(t, err)
	require.True(t, lease.Allowed)
}
