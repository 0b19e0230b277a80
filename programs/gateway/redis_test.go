//go:build unix

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// An outage of Redis is one line in the log when it begins and one when it
// ends, and every line has the format of the log.
func TestRedisOutageInTheLog(t *testing.T) {
	server := redistest.Start(t)
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	p := start(t, "store: redis\nredis: {addresses: ['"+server.Addr()+"']}\ntimeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: global, limit: 100000/h}]}]\n")
	status, _ := p.get(p.front)
	require.Equal(t, 200, status)
	server.Kill()
	require.Eventually(t, func() bool {
		status, _ := p.get(p.front)
		require.Equal(t, 200, status)
		return strings.Contains(p.log.String(), "state=open")
	}, 20*time.Second, 5*time.Millisecond)
	for range 50 {
		p.get(p.front)
	}
	opened := 0
	for line := range strings.Lines(p.log.String()) {
		require.Regexp(t, `^time=\S+ level=`, line)
		if strings.Contains(line, "=open") {
			opened++
		}
	}
	require.Equal(t, 1, opened, p.log.String())
}

// The Redis client writes no line of its own to the stderr of the process.
func TestNoLinesOfTheRedisClient(t *testing.T) {
	server := redistest.Start(t)
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	p := spawn(t, "store: redis\nredis: {addresses: ['"+server.Addr()+"']}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: global, limit: 100000/h}]}]\n")
	server.Kill()
	var got answers
	for begun := time.Now(); time.Since(begun) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		got.get(http.DefaultClient, p.front)
	}
	p.end()
	require.Positive(t, got[200].Load())
	require.Contains(t, p.log.String(), "state=open")
	for line := range strings.Lines(p.log.String()) {
		require.Regexp(t, `^time=\S+ level=`, line)
	}
}

// An operator raises one key until a time, with a reason, and takes it back; with Redis for all
// instances.
func TestOperatorsAdjustCallers(t *testing.T) {
	t.Setenv("GATEWAY_TEST_TOKEN", adminToken)
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	for store, instances := range map[string]int{
		"": 1,
		"store: redis\nredis: {timeout: 5s, addresses: ['" + redistest.Start(t).Addr() + "']}\n": 2,
	} {
		var all []*process
		for range instances {
			all = append(all, start(t, store+"overload: off\nadmin_token: {env: GATEWAY_TEST_TOKEN}\ntimeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: 'header:X-User', limit: 1/h}]}]\n"))
		}
		last := all[len(all)-1]
		require.Equal(t, 200, last.ask("/", "X-User", "ann"))
		require.Equal(t, 429, last.ask("/", "X-User", "ann"))
		status, answer := all[0].act("adjust", `{"policy":"a","who":["ann"],"limit":"100/h","seconds":2,"note":"ticket 7","unseen":true}`)
		require.Equal(t, 200, status, answer)
		require.Eventually(t, func() bool { return last.ask("/", "X-User", "ann") == 200 }, 10*time.Second, 20*time.Millisecond)
		require.Equal(t, 200, last.ask("/", "X-User", "bob"))
		require.Equal(t, 429, last.ask("/", "X-User", "bob"))
		require.Contains(t, all[0].log.String(), `note="ticket 7" limit=100/h seconds=2`)
		_, answer = all[0].act("why", `{"who":["ann"]}`)
		require.Contains(t, fmt.Sprint(answer), "limit 100/h until")
		require.Eventually(t, func() bool { return last.ask("/", "X-User", "ann") == 429 }, 10*time.Second, 20*time.Millisecond, "it ends by itself")
	}
}

// At a start without Redis the first line of the log says what decides meanwhile, and with which share; so
// does /status, until Redis is there. The gateway is ready: no limit of its file waits for Redis.
func TestStartWithoutRedis(t *testing.T) {
	t.Setenv("GATEWAY_TEST_TOKEN", adminToken)
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	for fallback, decides := range map[string]string{
		"":                  "each limit with a share of 1/16 in this instance (16 instances are assumed, none is counted yet)",
		", instances: 3":    "each limit with a share of 1/3 in this instance",
		", fallback: allow": "nothing: every request is admitted",
		", fallback: deny":  "nothing: every request is denied",
	} {
		for _, token := range []string{"", "admin_token: {env: GATEWAY_TEST_TOKEN}\n"} {
			server := redistest.Start(t)
			server.Kill()
			p := start(t, token+"store: redis\nredis: {addresses: ['"+server.Addr()+"']"+fallback+"}\ntimeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: global, limit: 32/h}]}]\n")
			first, _, _ := strings.Cut(p.log.String(), "\n")
			require.Contains(t, first, `level=WARN msg="Redis is away at the start" code=gateway.without_redis decides="`+decides+`"`)
			status, _ := p.get(p.admin + "/readyz")
			require.Equal(t, 200, status)
			_, text := p.get(p.admin + "/status")
			require.Contains(t, text, `"decides": "`+decides+`"`)
			if fallback == "" {
				server.Restart()
				require.Eventually(t, func() bool {
					p.get(p.front)
					_, text := p.get(p.admin + "/status")
					return strings.Contains(text, `"decides": "Redis"`)
				}, 20*time.Second, 20*time.Millisecond)
			}
			p.end()
		}
	}
}
