//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestIncidents: five incidents, provoked over sockets. Of each the log, the metrics and the page name
// the cause and the culprit, and the runbook has what to do.
func TestIncidents(t *testing.T) {
	t.Setenv("GATEWAY_TEST_TOKEN", adminToken)
	text, err := os.ReadFile("kit/RUNBOOK.md")
	require.NoError(t, err)
	held, release := make(chan struct{}, 1), make(chan struct{})
	u := upstream(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reports/slow" {
			held <- struct{}{}
			<-release
		}
	})
	far := redistest.StartProxy(t, redistest.Start(t))
	for _, incident := range []struct {
		name, file, limits string
		provoke            func(p *process)
		log                string   // the first signal
		metric             string   // its cause as an alert has it
		page               []string // cause and culprit, in the state of the page
		runbook            string
	}{
		{
			name: "table full", limits: "{name: per-user, key: 'header:X-User', limit: 5/h keys 16}",
			provoke: func(p *process) {
				for i := range 400 {
					p.ask("/", "X-User", fmt.Sprint("bot-7.", i))
				}
			},
			log:     `level=WARN msg="algo: the table of a limiter is full" code=algo.full limit=per-user overflowed=\d+ do="raise keys of the limit, or find the client that invents keys"`,
			metric:  `ratelimit_keys_overflowed_total{.*ratelimit_policy="per-user".*} [1-9]`,
			page:    []string{`"name":"per-user"`, `"origins":[{"part":1,"prefix":"bot-7."}]`},
			runbook: "| `algo.full` |",
		},
		{
			name: "Redis far", file: "store: redis\nredis: {addresses: ['" + far.Addr() + "']}\n", limits: "{name: a, key: ip, limit: 100000/h}",
			provoke: func(p *process) {
				far.Set(redistest.Fault{Delay: 60 * time.Millisecond})
				require.Eventually(p.t, func() bool { p.ask("/"); return strings.Contains(p.log.String(), "answers take") }, 20*time.Second, 5*time.Millisecond)
			},
			log:     `level=WARN msg="distributed: answers take \S+, the timeout is 20ms: limits are local; see WithTimeout"`,
			metric:  `ratelimit_redis_far 1`,
			page:    []string{`"state":"far"`, `"timeout_ms":20`},
			runbook: "### Redis far",
		},
		{
			name: "wrong trusted proxy", file: "trusted_proxies: [10.0.0.0/8]\n", limits: "{name: per-client, key: ip, limit: 3/h}",
			provoke: func(p *process) {
				for i := range 6 {
					p.ask("/", "X-Forwarded-For", fmt.Sprint("203.0.113.", i))
				}
			},
			log:     `level=WARN msg="a denied request came through a proxy that is not trusted, whose clients share one key" code=gateway.untrusted_proxy policy=per-client peer=127.0.0.1 do="name it in trusted_proxies if it is yours"`,
			metric:  `ratelimit_requests_total{.*ratelimit_outcome="denied",ratelimit_policy="per-client".*} 3`,
			page:    []string{`"key":"127.0.0.1"`, `"policy":"per-client"`},
			runbook: "| `gateway.untrusted_proxy` |",
		},
		{
			name: "overload denial", limits: "{name: a, key: ip, limit: 100000/h}",
			provoke: func(p *process) {
				go func() { _, _ = http.Get(p.front + "/reports/slow") }()
				<-held
				require.Equal(p.t, 503, p.ask("/reports/1"))
			},
			log:     `level=INFO msg="requests denied" code=telemetry.denied policy=in-flight\S* .*reason=overload cause=limit count=1 status=503`,
			metric:  `gateway_requests_in_flight{http_route="/reports/"} 1`,
			page:    []string{`"name":"in-flight`},
			runbook: "`policy=in-flight`",
		},
		{
			name: "forgotten shadow", limits: "{name: old, key: ip, limit: 1/h, shadow: true}",
			provoke: func(p *process) { p.ask("/"); p.ask("/") },
			log:     `level=WARN msg="limits on trial deny nothing" code=gateway.trial limits=\[old\] do="remove shadow: true to put them in force"`,
			metric:  `ratelimit_limit_off{.*ratelimit_policy="old".*} 1`,
			page:    []string{`"name":"old"`, `"off":true`},
			runbook: "### Limit denies nothing",
		},
		{
			name: "forgotten switch", limits: "{name: lifted, key: ip, limit: 1/h}",
			provoke: func(p *process) {
				status, answer := p.act("switch", `{"policy":"lifted","on":false,"note":"ticket 7"}`)
				require.Equal(p.t, 200, status, answer)
				require.Equal(p.t, 200, p.ask("/"))
				_, text := p.get(p.admin + "/status")
				require.Regexp(p.t, `(?s)"limits_off": \[\s+"lifted: off until \S+Z: ticket 7 \(127.0.0.1\)"\s+\]`, text)
			},
			log:     `level=WARN msg="algo: a limit is switched off and denies nothing" code=algo.switched_off limit=lifted`,
			metric:  `ratelimit_limit_off{.*ratelimit_policy="lifted".*} 1`,
			page:    []string{`"name":"lifted"`, `"on":false`, `"why_off":"ticket 7 (127.0.0.1)"`},
			runbook: "### Limit denies nothing",
		},
	} {
		t.Run(incident.name, func(t *testing.T) {
			p := spawn(t, incident.file+"admin_token: {env: GATEWAY_TEST_TOKEN}\nshow_keys: true\noverload: off\n"+
				"routes: [{pattern: /, upstream: '"+u+"', limits: ["+incident.limits+"]}, {pattern: /reports/, in_flight: 1, upstream: '"+u+"'}]\n")
			incident.provoke(p)
			var state []byte
			require.Eventually(t, func() bool {
				state, err = json.Marshal(p.state())
				return err == nil && !slices.ContainsFunc(incident.page, func(part string) bool { return !strings.Contains(string(state), part) })
			}, 10*time.Second, 50*time.Millisecond, "%v in %s", incident.page, state)
			_, metrics := p.get(p.admin + "/metrics")
			require.Regexp(t, incident.metric, metrics)
			select {
			case release <- struct{}{}:
			default:
			}
			p.end()
			require.Regexp(t, incident.log, p.log.String())
			require.Contains(t, string(text), incident.runbook)
		})
	}
}

// TestKeysThatNoProxyShares: a denial of another key than the address is no sign of a wrong proxy.
func TestKeysThatNoProxyShares(t *testing.T) {
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	p := start(t, "timeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: 'header:X-User', limit: 1/h}]}]\n")
	require.Equal(t, 200, p.ask("/", "X-User", "ann", "X-Forwarded-For", "203.0.113.1"))
	require.Equal(t, 429, p.ask("/", "X-User", "ann", "X-Forwarded-For", "203.0.113.1"))
	p.end()
	require.NotContains(t, p.log.String(), "gateway.untrusted_proxy")
}
