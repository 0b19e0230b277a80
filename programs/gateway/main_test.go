package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/programs/gateway/ops"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		gateway.Main() // ends the process
	}
	goleak.VerifyTestMain(m)
}

// process is the command, run in this process on free ports.
type process struct {
	t            *testing.T
	path         string
	front, admin string // URLs
	hup          chan os.Signal
	stop         func()
	exit         int // once ended is closed
	ended        chan struct{}
	out, log     *logged
}

const addresses = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"

// start runs the command on a file, to which the addresses are added.
func start(t *testing.T, file string) *process {
	t.Helper()
	p := newProcess(t, file)
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	go func() {
		defer close(p.ended)
		p.exit = gateway.Run(ctx, []string{"-config", p.path, "-poll", "10ms"}, p.out, p.log, p.hup)
	}()
	p.await()
	return p
}

func newProcess(t *testing.T, file string) *process {
	p := &process{t: t, path: filepath.Join(t.TempDir(), "gateway.yaml"), hup: make(chan os.Signal), ended: make(chan struct{}), out: &logged{}, log: &logged{}}
	p.write(file)
	return p
}

// await waits until the process serves, which ends with the test.
func (p *process) await() {
	p.t.Helper()
	serving := regexp.MustCompile(`msg=serving listen=(\S+) admin=(\S+)`)
	require.Eventually(p.t, func() bool {
		m := serving.FindStringSubmatch(p.log.String())
		if m != nil {
			p.front, p.admin = "http://"+m[1], "http://"+m[2]
		}
		return m != nil
	}, 10*time.Second, time.Millisecond)
	p.t.Cleanup(func() {
		p.end()
		http.DefaultClient.CloseIdleConnections()
	})
}

// end stops the process in order.
func (p *process) end() {
	p.stop()
	<-p.ended
}

// write replaces the file in one step, as editors do.
func (p *process) write(file string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(p.path+".new", []byte(addresses+file), 0o600))
	require.NoError(p.t, os.Rename(p.path+".new", p.path))
}

func (p *process) get(url string) (int, string) {
	p.t.Helper()
	resp, err := http.Get(url)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return resp.StatusCode, string(body)
}

func (p *process) config() (in struct {
	reload.Status
	Hash string `json:"hash"`
}) {
	p.t.Helper()
	_, body := p.get(p.admin + "/status")
	var status ops.Status
	require.NoError(p.t, json.Unmarshal([]byte(body), &status))
	return status.Config
}

// logged is a buffer for two goroutines.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func upstream(t *testing.T, h http.HandlerFunc) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// A changed file is in force without a restart; a broken one changes nothing
// and says where it is broken, in the log and at /status; mending it, or going
// back, clears that. The quota is spent once through all of it.
func TestReload(t *testing.T) {
	u := upstream(t, func(w http.ResponseWriter, r *http.Request) {})
	file := func(burst string) string {
		return "timeouts: {unready: 0s}\nroutes:\n  - pattern: /\n    upstream: " + u + "\n    limits:\n      - {name: a, key: ip, limit: 1/h burst " + burst + "}\n"
	}
	p := start(t, file("3"))
	for _, want := range []int{200, 200, 200, 429} {
		status, _ := p.get(p.front)
		require.Equal(t, want, status)
	}
	hash := p.config().Hash

	p.write(file("many"))
	require.Eventually(t, func() bool { return p.config().Failed != "" }, 10*time.Second, 5*time.Millisecond)
	broken := p.config()
	require.Contains(t, broken.Failed, `gateway.yaml:8:35: routes[0].limits[0].limit: is "1/h burst many": algo: spec: burst is "many"`)
	require.Equal(t, hash, broken.Hash)
	require.Contains(t, p.log.String(), "configuration not loaded, the old one stays in force")
	status, _ := p.get(p.front)
	require.Equal(t, 429, status)

	p.write(file("4"))
	require.Eventually(t, func() bool { return p.config().Failed == "" }, 10*time.Second, 5*time.Millisecond)
	require.NotEqual(t, hash, p.config().Hash)
	status, _ = p.get(p.front)
	require.Equal(t, 200, status, "a burst of 4, of which 3 are owed")
	status, _ = p.get(p.front)
	require.Equal(t, 429, status)

	reloads := p.config().Reloads
	p.hup <- syscall.SIGHUP
	require.Eventually(t, func() bool { return p.config().Reloads == reloads+1 }, 10*time.Second, 5*time.Millisecond)
	status, _ = p.get(p.front)
	require.Equal(t, 429, status)
}

// At the end: not ready first and still serving, then nothing new is accepted,
// and who is inside is answered.
func TestShutdown(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	u := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(inside)
			<-leave
		}
	})
	p := start(t, "timeouts: {unready: 300ms, drain: 20s}\nroutes: [{pattern: /, upstream: '"+u+"'}]\n")
	status, body := p.get(p.admin + "/readyz")
	require.Equal(t, 200, status)
	require.Equal(t, "ready\n", body)
	slow := make(chan int, 1)
	go func() {
		resp, err := http.Get(p.front + "/slow")
		if err != nil {
			slow <- 0
			return
		}
		_ = resp.Body.Close()
		slow <- resp.StatusCode
	}()
	<-inside
	p.stop()
	require.Eventually(t, func() bool { s, _ := p.get(p.admin + "/readyz"); return s == 503 }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(p.front)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err != nil
	}, 10*time.Second, 10*time.Millisecond, "nothing new is accepted")
	status, _ = p.get(p.admin + "/healthz")
	require.Equal(t, 200, status, "alive, and a request is still running")
	close(leave)
	require.Equal(t, 200, <-slow)
	<-p.ended
	require.Equal(t, 0, p.exit)
}

// The second address has metrics and the admin page, where an operator with the
// token can switch a limit off, which a change of the file does not undo.
func TestOperators(t *testing.T) {
	t.Setenv("GATEWAY_TEST_TOKEN", "a token of more than sixteen bytes")
	u := upstream(t, func(w http.ResponseWriter, r *http.Request) {})
	file := func(rate string) string {
		return "timeouts: {unready: 0s}\nadmin_token: {env: GATEWAY_TEST_TOKEN}\nroutes: [{pattern: /, upstream: '" + u + "', limits: [{name: a, key: ip, limit: " + rate + "}]}]\n"
	}
	p := start(t, file("1/h"))
	for _, want := range []int{200, 429, 429} {
		status, _ := p.get(p.front)
		require.Equal(t, want, status)
	}
	_, metrics := p.get(p.admin + "/metrics")
	require.Regexp(t, `ratelimit_requests_total\{.*ratelimit_outcome="allowed",ratelimit_policy="a",ratelimit_transport="http"\} 1\n`, metrics)
	require.Regexp(t, `ratelimit_requests_total\{.*ratelimit_outcome="denied",ratelimit_policy="a",ratelimit_reason="quota",ratelimit_transport="http"\} 2\n`, metrics)
	require.Regexp(t, `ratelimit_active_requests\{.*ratelimit_policy="overload"\} 0\n`, metrics)
	require.Contains(t, metrics, "config_last_reload_successful 1\n")
	require.Regexp(t, `ratelimit_limit\{.*ratelimit_policy="a"\} 1\n`, metrics)
	require.Regexp(t, `ratelimit_limit_window_seconds\{.*ratelimit_policy="a"\} 3600\n`, metrics)
	require.Regexp(t, `ratelimit_keys\{.*ratelimit_policy="a"\} 1\n`, metrics)
	require.Regexp(t, `ratelimit_keys_limit\{.*ratelimit_policy="a"\} 1.048576e\+06\n`, metrics)
	status, page := p.get(p.admin + "/")
	require.Equal(t, 200, status)
	require.Contains(t, page, "<html")

	act := func(token string) int {
		req, err := http.NewRequest(http.MethodPost, p.admin+"/api/switch", strings.NewReader(`{"policy": "a", "on": false}`))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Sluice-Admin", "1")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Contains(t, []int{401, 403}, act("another token of sixteen bytes"))
	status, _ = p.get(p.front)
	require.Equal(t, 429, status)
	require.Less(t, act("a token of more than sixteen bytes"), 300)
	p.write(file("2/h burst 1"))
	require.Eventually(t, func() bool { return p.config().Reloads == 1 }, 10*time.Second, 5*time.Millisecond)
	for range 3 {
		status, _ = p.get(p.front)
		require.Equal(t, 200, status, "the limit is switched off")
	}
}

func TestCheck(t *testing.T) {
	var out, errs strings.Builder
	require.Equal(t, 0, gateway.Run(t.Context(), []string{"-check", "-config", "gateway.yaml"}, &out, &errs, nil))
	require.Equal(t, `gateway.yaml: ok, 3 routes
  everybody: 5000/s (5000/s)
  per-client: 100/s burst 200 (100/s)
  login: sliding-log 5/min (0.08333/s)
  api-per-key: 600/min burst 50 (10/s)
  api-daily: fixed-window 10000/day (0.1157/s)
  api-strict-trial: strict 10/s (10/s), on trial
`, out.String())

	path := filepath.Join(t.TempDir(), "broken.yaml")
	require.NoError(t, os.WriteFile(path, []byte("routes:\n  - pattern: /\n    upstream: http://a\n    limit: 5/s\n"), 0o600))
	require.Equal(t, 1, gateway.Run(t.Context(), []string{"-check", "-config", path}, io.Discard, &errs, nil))
	require.Contains(t, errs.String(), "broken.yaml:4:5: routes[0].limit: unknown field")
	require.Equal(t, 1, gateway.Run(t.Context(), []string{"-check", "-config", path + ".none"}, io.Discard, &errs, nil))
	require.Equal(t, 2, gateway.Run(t.Context(), []string{"-chekc"}, io.Discard, &errs, nil))
}

// Requests that outlast the drain are cut off, which the log says. It is not a
// failure of the gateway.
func TestDrainTimeout(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	u := upstream(t, func(http.ResponseWriter, *http.Request) { close(inside); <-leave })
	defer close(leave)
	p := start(t, "timeouts: {unready: 0s, drain: 50ms}\nroutes: [{pattern: /, upstream: '"+u+"'}]\n")
	go func() {
		if resp, err := http.Get(p.front); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-inside
	p.stop()
	<-p.ended
	require.Equal(t, 0, p.exit)
	require.Contains(t, p.log.String(), `level=WARN msg="drain timed out, open requests were cut off" drain=50ms requests=1`)
	require.NotContains(t, p.log.String(), "level=ERROR")
}

// The demo serves at once, and is gone afterwards.
func TestDemo(t *testing.T) {
	t.Setenv("GATEWAY_LISTEN", "127.0.0.1:0")
	t.Setenv("GATEWAY_ADMIN", "127.0.0.1:0")
	ctx, stop := context.WithCancel(t.Context())
	log, out, exit := &logged{}, &logged{}, make(chan int, 1)
	go func() { exit <- gateway.Run(ctx, []string{"-demo"}, out, log, nil) }()
	serving := regexp.MustCompile(`msg=serving listen=(\S+) admin=(\S+)`)
	require.Eventually(t, func() bool { return serving.MatchString(log.String()) }, 10*time.Second, time.Millisecond, log)
	at := serving.FindStringSubmatch(log.String())
	p := &process{t: t, front: "http://" + at[1], admin: "http://" + at[2]}
	status, body := p.get(p.front + "/users/ann/x")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"path":"/users/ann/x"`)
	require.Equal(t, 401, p.ask("/keys"))
	file := regexp.MustCompile(`serves (\S+)`).FindStringSubmatch(out.String())[1]
	require.FileExists(t, file)
	require.Contains(t, out.String(), "http://127.0.0.1:0/users/ann/", "the address that it was given")
	status, _ = p.get(p.admin + "/api/state")
	require.Equal(t, 403, status)
	token := regexp.MustCompile(`token (\S+)`).FindStringSubmatch(out.String())[1]
	r, err := http.NewRequest(http.MethodGet, p.admin+"/api/state", nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, 200, resp.StatusCode)

	// The health check of a container.
	require.NoError(t, os.WriteFile(file+".health", []byte("admin: "+at[2]+"\nroutes: [{pattern: /, upstream: 'http://a'}]\n"), 0o600))
	require.Equal(t, 0, gateway.Run(ctx, []string{"-health", "-config", file + ".health"}, out, log, nil))
	stop()
	require.Equal(t, 0, <-exit)
	require.NoFileExists(t, file)
	http.DefaultClient.CloseIdleConnections()
}

func TestHealthAndVersion(t *testing.T) {
	var out, errs strings.Builder
	path := filepath.Join(t.TempDir(), "f.yaml")
	require.NoError(t, os.WriteFile(path, []byte("admin: ${NO_SUCH_ADDRESS:-127.0.0.1:1}\nroutes: [{pattern: /, upstream: '${NO_SUCH_UPSTREAM}'}]\n"), 0o600))
	require.Equal(t, 1, gateway.Run(t.Context(), []string{"-health", "-config", path}, &out, &errs, nil))
	require.Contains(t, errs.String(), "f.yaml:2:33: routes[0].upstream: names the environment variable NO_SUCH_UPSTREAM, which is not set")
	t.Setenv("NO_SUCH_UPSTREAM", "http://a")
	require.Equal(t, 1, gateway.Run(t.Context(), []string{"-health", "-config", path}, &out, &errs, nil))
	require.Contains(t, out.String(), "connection refused")
	require.Equal(t, 0, gateway.Run(t.Context(), []string{"-version"}, &out, &errs, nil))
	require.Regexp(t, `gateway \S* ?go1\.`, out.String())
}

// A wrong unit shows: the log, the page and -check name the limit, the old and the new one.
func TestWrongUnit(t *testing.T) {
	t.Setenv("GATEWAY_TEST_TOKEN", adminToken)
	file := func(limit string) string {
		return "admin_token: {env: GATEWAY_TEST_TOKEN}\ntimeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: http://127.0.0.1:9, limits: [{name: search, key: ip, limit: " + limit + "}]}]\n"
	}
	p := start(t, file("100/s burst 20"))
	p.write(file("100/min burst 20"))
	require.Eventually(t, func() bool { return p.config().Reloads == 1 }, 10*time.Second, 5*time.Millisecond)
	require.Contains(t, p.log.String(), `changed="[search: 100/s burst 20 -> 100/min burst 20]"`)
	marks, _ := p.state()["marks"].([]any)
	require.Contains(t, marks[len(marks)-1], "text")
	require.Equal(t, "limits loaded; search: 100/s burst 20 -> 100/min burst 20", marks[len(marks)-1].(map[string]any)["text"])
	var out, errs strings.Builder
	require.Equal(t, 0, gateway.Run(t.Context(), []string{"-check", "-config", p.path}, &out, &errs, nil), errs.String())
	require.Contains(t, out.String(), "\n  search: 100/min burst 20 (1.667/s)\n")
	_, metrics := p.get(p.admin + "/metrics")
	require.Regexp(t, `ratelimit_limit_window_seconds\{.*ratelimit_policy="search"\} 12\n`, metrics, "the dashboard draws 20 / 12 s")
}

// A limit on trial is named in the log at the start, and marked on the page.
func TestForgottenShadow(t *testing.T) {
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	p := start(t, "timeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: old, key: ip, limit: 1/h, shadow: true}, {name: own, key: ip, limit: 9/h}]}]\n")
	require.Contains(t, p.log.String(), `level=WARN msg="limits on trial deny nothing" code=gateway.trial limits=[old] do="remove shadow: true`)
	for i, off := range []bool{true, false} {
		require.Equal(t, off, p.state()["policies"].([]any)[i].(map[string]any)["off"])
	}
}
