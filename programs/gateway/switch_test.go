//go:build unix

package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// A limit that an operator switches off at one gateway is off at all on that Redis, and after a restart;
// blocked callers stay blocked.
func TestSwitchOverTwoGateways(t *testing.T) {
	t.Setenv("GATEWAY_TEST_TOKEN", adminToken)
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	file := "store: redis\nredis: {timeout: 5s, addresses: ['" + redistest.Start(t).Addr() + "']}\noverload: off\nadmin_token: {env: GATEWAY_TEST_TOKEN}\ntimeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '" + u + "', limits: [{name: a, key: 'header:X-User', limit: 1/h}]}]\n"
	a, b := start(t, file), start(t, file)
	asks := func(p *process, user string, n int) (passed int) {
		for range n {
			if p.ask("/", "X-User", user) == 200 {
				passed++
			}
		}
		return passed
	}
	require.Equal(t, 1, asks(a, "ann", 3)+asks(b, "ann", 3))
	status, _ := a.act("block", `{"policy":"a","who":["mallory"],"seconds":600,"unseen":true}`)
	require.Equal(t, 200, status)
	status, answer := a.act("switch", `{"policy":"a","on":false,"note":"ticket 7"}`)
	require.Equal(t, 200, status, answer)
	require.Eventually(t, func() bool { return asks(b, "ann", 1) == 1 }, 10*time.Second, 20*time.Millisecond, "the other gateway")
	require.Equal(t, 20, asks(b, "ann", 20))
	require.Zero(t, asks(b, "mallory", 3))
	a.end()
	a = start(t, file)
	require.Contains(t, a.log.String(), `level=WARN msg="limits are switched off and deny nothing" code=gateway.switched_off limits="[a: off until `, "at each load")
	_, text := b.get(b.admin + "/status")
	require.Regexp(t, `"a: off until \S+Z: ticket 7 \(127.0.0.1\)"`, text)
	_, text = b.get(b.admin + "/metrics")
	require.Regexp(t, `ratelimit_limit_off\{.*ratelimit_policy="a"\} 1\n`, text)
	require.Equal(t, 20, asks(a, "ann", 20), "after a restart")
	require.Zero(t, asks(a, "mallory", 3))
	status, _ = a.act("switch", `{"policy":"a","on":true}`)
	require.Equal(t, 200, status)
	require.Eventually(t, func() bool { return asks(b, "ann", 1) == 0 }, 10*time.Second, 20*time.Millisecond)
}
