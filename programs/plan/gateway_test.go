package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/programs/plan/report"
)

// gatewayFile writes a file of the gateway.
func gatewayFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "gateway.yaml")
	require.NoError(t, os.WriteFile(name, []byte("listen: 127.0.0.1:8080\n"+strings.ReplaceAll(text, "UP", "http://127.0.0.1:9000")), 0o600))
	return name
}

// lines are records of one second each; each text is fields of JSON.
func lines(fields ...string) string {
	var b strings.Builder
	for i, f := range fields {
		fmt.Fprintf(&b, `{"time":"2026-11-28T21:%02d:%02d.5Z","remote_addr":"203.0.113.1","method":"GET",%s}`+"\n", i/60, i%60, f)
	}
	return b.String()
}

// figures are requests, units and keys.
func figures(r *report.Result) []int64 { return []int64{r.Requests, r.Units, r.Keys} }

// TestGatewayCosts: a cost is the file's number, or the header's; without that a request costs 1, and counts once.
func TestGatewayCosts(t *testing.T) {
	file := gatewayFile(t, `
routes:
  - {pattern: /, upstream: UP, limits: [{name: five, key: ip, limit: 10/min burst 12, cost: 5}, {name: said, key: ip, limit: 10/min, cost: header:X-Units}]}
`)
	r := results(t, lines(`"uri":"/"`, `"uri":"/","headers":{"X-Units":"7"}`, `"uri":"/","headers":{"X-Units":"-1"}`), "-limits", file)
	require.Zero(t, r.Unreadable)
	require.Equal(t, []int64{3, 15, 1}, figures(r.Tracks[0]))
	require.EqualValues(t, 1, r.Tracks[0].Limits[0].Denied)
	require.Equal(t, []int64{3, 9, 1}, figures(r.Tracks[1]))
	require.Contains(t, fmt.Sprint(r.Notes), "said: 2 records do not have the cost")
}

// TestUnreadableCost: a record without the -cost counts nowhere.
func TestUnreadableCost(t *testing.T) {
	file := gatewayFile(t, `
routes:
  - {pattern: /, upstream: UP, limits: [{name: five, key: ip, limit: 10/min, cost: header:X-Units}]}
`)
	r := results(t, lines(`"uri":"/","n":2,"X-Units":3`, `"uri":"/","X-Units":3`), "-limits", file, "-limit", "5/s", "-cost", "n", "-bad", "50")
	require.EqualValues(t, 1, r.Unreadable)
	for _, track := range r.Tracks {
		require.EqualValues(t, 1, track.Requests)
	}
}

// TestGatewayKeys: a part of the path is a key, and missing_key decides about requests without one.
func TestGatewayKeys(t *testing.T) {
	file := gatewayFile(t, `
limits:
  - {name: user, key: header:X-User, limit: 10/min}
routes:
  - {pattern: "/items/{id}", upstream: UP, limits: [{name: item, key: path:id, limit: 10/min}]}
  - {pattern: /shared, upstream: UP, limits: [user]}
  - {pattern: /skip, upstream: UP, limits: [user], missing_key: skip}
  - {pattern: /deny, upstream: UP, limits: [user, {name: address, key: ip, limit: 10/min}], missing_key: deny}
`)
	r := results(t, lines(
		`"uri":"/items/7?a=1"`, `"uri":"/items/7?a=2"`, `"uri":"/items/a%2Fb"`,
		`"uri":"/shared"`, `"uri":"/shared","headers":{"X-User":"ann"}`, `"uri":"/skip"`, `"uri":"/skip","headers":{"X-User":"ann"}`,
		`"uri":"/deny"`, `"uri":"/deny","headers":{"X-User":"bob"}`,
	), "-limits", file)
	item, user, address := r.Tracks[0], r.Tracks[1], r.Tracks[2]
	require.Equal(t, []int64{3, 3, 2}, figures(item), "7 and a/b")
	require.Equal(t, []int64{4, 4, 3}, figures(user), "the shared key, ann and bob")
	require.Equal(t, []int64{1, 1, 1}, figures(address), "not the request that is answered with 401")
	require.Contains(t, fmt.Sprint(r.Notes), "user: 1 record without header:X-User (20 %) shares one key")
	require.Contains(t, fmt.Sprint(r.Notes), "user: 1 record without header:X-User (20 %) was left out")
}

// TestGatewayRoutes: proxies, lists of addresses, spellings and limits on requests in flight are those of the file.
func TestGatewayRoutes(t *testing.T) {
	file := gatewayFile(t, `
trusted_proxies: [203.0.113.0/24]
access: {deny: [192.0.2.0/24], allow: [10.0.0.0/8]}
routes:
  - {pattern: /, upstream: UP, limits: [{name: client, key: ip, limit: 10/min}]}
  - {pattern: /Login, upstream: UP, any_spelling: true, in_flight: 2, in_flight_per_client: 1, limits: [{name: login, key: ip, limit: 10/min}]}
`)
	from := func(address, uri string) string {
		return fmt.Sprintf(`"uri":%q,"x_forwarded_for":%q,"request_time":60.0`, uri, address)
	}
	log := lines(
		from("198.51.100.1", "/x"), from("192.0.2.7", "/x"), from("10.0.0.1", "/x"), from("2001:db8::1", "/x"),
		from("198.51.100.1", "/login/"), from("198.51.100.2", "/LOGIN"), from("198.51.100.2", "/Login;a=1"), from("10.0.0.1", "/%6cogin"), from("192.0.2.7", "/login"),
	)
	r := results(t, log, "-limits", file)
	client, login, total, each := r.Tracks[0], r.Tracks[1], r.Tracks[2], r.Tracks[3]
	require.Equal(t, []int64{2, 2, 2}, figures(client))
	require.Equal(t, []int64{3, 3, 2}, figures(login))
	require.Equal(t, []int64{4, 4, 1}, figures(total), "those of the allowed list too")
	require.Equal(t, "/Login in_flight", total.Limits[0].Name)
	require.Equal(t, "2 in flight in total", total.Limits[0].Limit)
	require.EqualValues(t, 2, total.Limits[0].Denied)
	require.Equal(t, []int64{3, 3, 2}, figures(each))
	require.EqualValues(t, 1, each.Limits[0].Denied)

	r = results(t, strings.ReplaceAll(log, "request_time", "nothing"), "-limits", file)
	require.Contains(t, fmt.Sprint(r.Notes), "/Login in_flight_per_client: 1 in flight was not tried, since the log has no durations")
	r = results(t, lines(`"uri":"/x"`), "-limits", file)
	require.Contains(t, fmt.Sprint(r.Notes), "login: no record is on its routes")
	require.Contains(t, fmt.Sprint(r.Notes), "had no forwarded address")
}

// TestInFlightFlags: numbers of requests in flight are tried on a log with durations.
func TestInFlightFlags(t *testing.T) {
	one := results(t, access(), "-in-flight", "4", "-in-flight-total", "14", "-limit", "1/s burst 5").Tracks[0]
	require.Equal(t, []string{"1/s burst 5", "4 in flight", "14 in flight in total"}, []string{one.Limits[0].Limit, one.Limits[1].Limit, one.Limits[2].Limit})
	require.EqualValues(t, 200, one.Limits[1].KeysDenied, "a page is five calls at once")
	require.EqualValues(t, 2000, one.Limits[1].Denied)
	require.Positive(t, one.Limits[2].Denied)
	_, _, _, err := plan(t, access(), "-in-flight", "0")
	require.ErrorContains(t, err, "limit is 0")
}
