package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const twoLimits = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
timeouts: {unready: 0s}
domains:
  - name: edge
    descriptors:
      - {key: generic_key, value: everybody, limit: 100/s}
      - {key: plan, value: gold, unlimited: true}
      - key: path
        value: /login
        descriptors: [{key: remote_address, limit: 5/min}]
`

// TestTyposAreSeen: what lifts a limit is counted and has one line of the log for each kind, without the values that
// clients choose.
func TestTyposAreSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rls.yaml")
	require.NoError(t, os.WriteFile(path, []byte(twoLimits), 0o600))
	log := &logged{}
	ctx, stop := context.WithCancel(context.Background())
	exit := make(chan int, 1)
	go func() { exit <- rateLimits.Run(ctx, []string{"-config", path}, io.Discard, log, nil) }()
	defer func() { stop(); <-exit }()
	serving := regexp.MustCompile(`msg=serving listen=(\S+) admin=(\S+)`)
	require.Eventually(t, func() bool { return serving.MatchString(log.String()) }, 10*time.Second, time.Millisecond)
	at := serving.FindStringSubmatch(log.String())
	conn, err := grpc.NewClient(at[1], grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	ask := func(domain string, entries ...string) {
		d := &ratelimit.RateLimitDescriptor{}
		for _, e := range entries {
			key, value, _ := strings.Cut(e, "=")
			d.Entries = append(d.Entries, &ratelimit.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		resp, err := rls.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &rls.RateLimitRequest{Domain: domain, Descriptors: []*ratelimit.RateLimitDescriptor{d}})
		require.NoError(t, err)
		require.Equal(t, rls.RateLimitResponse_OK, resp.OverallCode)
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(twoLimits, "100/s", "100/min", 1)), 0o600))
	require.Eventually(t, func() bool {
		return strings.Contains(log.String(), `changed="[edge.generic_key.everybody: 100/s -> 100/min]"`)
	}, 10*time.Second, 10*time.Millisecond, log)
	ask("edge", "generic_key=everybody")
	ask("edge", "plan=gold")
	ask("edge", "path=/login", "remote_address=192.0.2.1")
	require.NotContains(t, log.String(), "no limit")
	for range 3 {
		ask("egde", "generic_key=everybody")
		ask("edge", "generic_key=evrybody")
		ask("edge", "path=/login", "remote_adress=192.0.2.1")
		ask("edge", "path=/login", "remote_adress=192.0.2.2")
		ask("edge", "path=/login")
	}
	for _, line := range []string{`domain=egde`, `descriptor="generic_key=evrybody"`, `descriptor="path, remote_adress"`, `descriptor=path`} {
		require.Equal(t, 1, strings.Count(log.String(), line+"\n"), log.String())
	}
	require.NotContains(t, log.String(), "192.0.2")
	resp, err := http.Get("http://" + at[2] + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "\nrls_unknown_domains_total 3\n")
	require.Contains(t, string(text), "\nrls_unknown_descriptors_total 12\n")
}

// TestCheckOfRequests: -check compares the file with what Envoy sends.
func TestCheckOfRequests(t *testing.T) {
	folder := t.TempDir()
	path, sent := filepath.Join(folder, "rls.yaml"), filepath.Join(folder, "sent.json")
	require.NoError(t, os.WriteFile(path, []byte(twoLimits), 0o600))
	check := func(requests ...string) (status int, said string) {
		require.NoError(t, os.WriteFile(sent, []byte(strings.Join(requests, "\n")), 0o600))
		var out strings.Builder
		status = rateLimits.Run(t.Context(), []string{"-config", path, "-check", "-sent", sent}, &out, &out, nil)
		return status, out.String()
	}
	everybody := `{"domain": "edge", "descriptors": [{"entries": [{"key": "generic_key", "value": "everybody"}]}]}`
	status, said := check(everybody, "", `{"domain": "edge", "descriptors": [{"entries": [{"key": "plan", "value": "gold"}]}]}`)
	require.Zero(t, status, said)
	require.Contains(t, said, "sent.json: ok, 2 requests")
	status, said = check(everybody, strings.Replace(everybody, "edge", "egde", 1),
		strings.Replace(everybody, "everybody", "evrybody", 1), strings.Replace(everybody, "domain", "domian", 1))
	require.Equal(t, 1, status)
	require.Contains(t, said, `sent.json:2: no limit: the file has no domain "egde"`)
	require.Contains(t, said, `sent.json:3: no limit: domain "edge" has none for generic_key=evrybody`)
	require.Contains(t, said, `sent.json:4: `)
	require.NotContains(t, said, "sent.json:1")
	require.NotContains(t, said, ": ok, ")
}
