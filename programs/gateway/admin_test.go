package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const adminToken = "0123456789abcdef"

// act sends an action of the admin page.
func (p *process) act(action, body string) (status int, answer map[string]any) {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodPost, p.admin+"/api/"+action, strings.NewReader(body))
	require.NoError(p.t, err)
	r.Header.Set("Content-Type", "application/json")
	return p.page(r)
}

// page sends a request as the admin page does.
func (p *process) page(r *http.Request) (status int, answer map[string]any) {
	p.t.Helper()
	r.Header.Set("X-Sluice-Admin", "1")
	r.Header.Set("Authorization", "Bearer "+adminToken)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	require.NoError(p.t, json.NewDecoder(resp.Body).Decode(&answer))
	return resp.StatusCode, answer
}

func (p *process) state() map[string]any {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodGet, p.admin+"/api/state", nil)
	require.NoError(p.t, err)
	status, state := p.page(r)
	require.Equal(p.t, 200, status)
	return state
}

// ask sends a request with headers in pairs to the gateway.
func (p *process) ask(path string, headers ...string) int {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodGet, p.front+path, nil)
	require.NoError(p.t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(p.t, err)
	require.NoError(p.t, resp.Body.Close())
	return resp.StatusCode
}

// Operators name callers as their clients do, by address, header or API key, or
// by the hash of a row; a typo is not carried out; the block is listed, and
// stays when the limit is switched off.
func TestOperatorsBlockCallers(t *testing.T) {
	t.Setenv("GATEWAY_TEST_TOKEN", adminToken)
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	p := start(t, "admin_token: {env: GATEWAY_TEST_TOKEN}\ntimeouts: {unready: 0s}\nroutes:\n"+
		"  - {pattern: /key, upstream: '"+u+"', missing_key: deny, limits: [{name: per-key, key: 'secret:X-Api-Key', limit: 100/h burst 50}]}\n"+
		"  - {pattern: /both, upstream: '"+u+"', limits: [{name: both, key: [ip, 'header:X-User', route], limit: 3/h}]}\n")
	for _, key := range []string{"first key", "second key"} {
		require.Equal(t, 200, p.ask("/key", "X-Api-Key", key))
	}
	status, answer := p.act("block", `{"policy":"per-key","who":["frist key"],"seconds":60}`)
	require.Equal(t, 409, status, answer)
	status, _ = p.act("block", `{"policy":"per-key","who":["first key"],"seconds":60,"note":"ticket 7"}`)
	require.Equal(t, 200, status)
	require.Equal(t, 429, p.ask("/key", "X-Api-Key", "first key"))
	require.Equal(t, 200, p.ask("/key", "X-Api-Key", "second key"))

	for range 5 {
		p.ask("/both", "X-User", "mallory")
	}
	state := p.state()
	require.Equal(t, []any{"address", "header X-User", "route"}, state["policies"].([]any)[0].(map[string]any)["identity"])
	require.Equal(t, "100/h burst 50", state["policies"].([]any)[1].(map[string]any)["text"])
	block := state["blocks"].([]any)[0].(map[string]any)
	require.Equal(t, "ticket 7", block["note"])
	require.Equal(t, "127.0.0.1", block["by"])
	require.Greater(t, block["until"], float64(time.Now().Add(50*time.Second).UnixMilli()))
	status, answer = p.act("why", `{"policy":"both","who":["127.0.0.1","mallory","/both"]}`)
	require.Equal(t, 200, status)
	require.Equal(t, 0.0, answer["remaining"])
	hash := state["top"].([]any)[0].(map[string]any)["hash"]
	require.Equal(t, hash, answer["hash"])
	status, answer = p.act("reset", fmt.Sprintf(`{"policy":"both","hash":"%s"}`, hash))
	require.Equal(t, 200, status, answer)
	require.Equal(t, 200, p.ask("/both", "X-User", "mallory"))

	status, _ = p.act("switch", `{"policy":"per-key","on":false}`)
	require.Equal(t, 200, status)
	require.Equal(t, 429, p.ask("/key", "X-Api-Key", "first key"))
	p.stop()
	<-p.ended
	require.Regexp(t, `code=telemetry.denied policy=per-key key=[0-9a-f]{16} .*reason=quota.*`, p.log.String())
	require.Regexp(t, `msg="requests denied" blocked=true code=telemetry.denied policy=per-key`, p.log.String())
	require.NotRegexp(t, `msg="requests denied" code=telemetry.denied policy=per-key`, p.log.String())
	require.NotContains(t, p.log.String(), "first key")
}

// A request meets the overload protection, two limits and the bound of its route, and is one
// request on the page.
func TestPageCountsRequestsOnce(t *testing.T) {
	t.Setenv("GATEWAY_TEST_TOKEN", adminToken)
	u := upstream(t, func(http.ResponseWriter, *http.Request) {})
	p := start(t, "timeouts: {unready: 0s}\nadmin_token: {env: GATEWAY_TEST_TOKEN}\nroutes: [{pattern: /, upstream: '"+u+"', in_flight: 9, limits: [{name: a, key: ip, limit: 5/h}, {name: b, key: ip, limit: 2/h}]}]\n")
	for range 6 {
		p.ask("/")
	}
	sum := func(counts any) (n float64) {
		all, _ := counts.([]any)
		for _, one := range all {
			n += one.(float64)
		}
		return n
	}
	require.Eventually(t, func() bool {
		requests, _ := p.state()["requests"].(map[string]any)
		return sum(requests["admitted"]) == 2 && sum(requests["denied"]) == 4
	}, 20*time.Second, 100*time.Millisecond)
}
