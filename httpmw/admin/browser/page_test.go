package browser

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw/admin"
)

// quiet keeps refusals, which are the point here, out of the output.
func quiet() admin.Option { return admin.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))) }

// switchOff clicks the switch of the first policy twice: the first asks whether
// it is meant, for half a minute.
const switchOff = `(() => {
	const button = document.querySelector("#policies tbody tr td:last-child button");
	button.click();
	const asked = button.textContent;
	button.click();
	return asked;
})()`

// typeKey replaces the key in the input.
func typeKey(key string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`(() => {
	const input = document.querySelector("#key");
	input.value = ` + quote(key) + `;
	input.dispatchEvent(new Event("input"));
})()`)
}

// The page shows what the service does, and lets the right ones act.
func TestPage(t *testing.T) {
	s := stageScene(t, admin.WithAuthorize(admin.Bearer(token)), quiet())
	b := open(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(s.url))

	// What there is to see.
	b.until(`document.title.startsWith("shop-api") && document.querySelector("#live").textContent === "Live"`)
	b.until(`document.querySelectorAll("#traffic svg path[fill^=url]").length >= 3`)
	b.until(`[...document.querySelectorAll("#policies button.link")].map((b) => b.textContent).join() === "per-client,reports,search-trial,partners,checkout"`)
	b.until(`document.querySelector("#policies tbody tr td.num").textContent > "0"`)
	b.until(`document.querySelector("#top .mono").textContent.length >= 16`)
	b.until(`document.querySelector("#panels").textContent.includes("Adaptive limit: checkout")`)
	b.until(`document.querySelector("#panels").textContent.includes("healthy")`)
	b.until(`document.querySelector("#panels").textContent.includes("own share")`)
	b.until(`document.querySelector("#last").textContent.includes('RateLimit-Policy: "per-client";q=12;w=3')`)

	// One policy alone.
	b.do(chromedp.Click("#policies button.link"))
	b.until(`document.querySelector("#h-traffic").textContent === "Decisions per second: per-client"`)

	// A second of the chart, by the keyboard.
	b.do(chromedp.Focus("#traffic svg"), chromedp.KeyEvent(kb.ArrowLeft))
	b.until(`document.querySelector("#traffic-legend .when").textContent === "1 s ago"`)

	// Without a token nothing can be done.
	b.do(chromedp.SetValue("#key", "user-0"), chromedp.Click("#key-form .main"))
	b.until(`document.querySelector("#key-says").textContent === "Not shown: you are not authorised to act."`)
	b.do(chromedp.Click("#reset"))
	b.until(`document.querySelector("#key-says").textContent === "Not done: you are not authorised to act."`)
	require.Equal(t, "Really? Limits nothing", js[string](b, switchOff))
	b.until(`document.querySelector("#notice").textContent === "Not done: you are not authorised to act."`)
	require.False(t, isOff(s.users))

	// With it, everything.
	b.do(chromedp.SendKeys("#token", token), chromedp.Click("#login button"), chromedp.Click("#key-form .main"))
	b.until(`/^\d+ of 12 left/.test(document.querySelector("#key-says").textContent)`)
	b.until(`document.querySelectorAll("#fill svg path.limit").length === 1`)
	b.do(chromedp.Click("#block"))
	b.until(`document.querySelector("#key-hash").textContent.includes("blocked for 60 min, in this process")`)
	require.Equal(t, 1, s.users.Blocked())
	b.until(`/^token-bucket, \d+ keys, room for 1\.0.M or more, 1 blocked$/.test(document.querySelector("#policies small").textContent)`)
	b.until(`document.querySelector("#key-says").textContent.startsWith("Blocked until ")`)
	b.until(`[...document.querySelectorAll("#last .badge")].some((x) => x.textContent === "blocked 429")`)
	b.do(chromedp.Click("#blocks td:last-child button"))
	b.until(`document.querySelector("#blocked").hidden`)
	require.Equal(t, 0, s.users.Blocked())

	// Another limit for the key, listed with its reason, ended by hand.
	b.do(chromedp.SetValue("#limit", "1200/min burst 999"), chromedp.SetValue("#note", "ticket 8"), chromedp.Click("#adjust"))
	b.until(`document.querySelector("#key-hash").textContent.includes("limit 1200/min burst 999 for 60 min, in this process")`)
	b.until(`/of 999 left.* Limit 1200\/min burst 999, set by an operator\.$/.test(document.querySelector("#key-says").textContent)`)
	b.until(`document.querySelector("#blocks").textContent.includes("1200/min burst 999") && document.querySelector("#blocks").textContent.includes("ticket 8")`)
	b.do(chromedp.Click("#blocks td:last-child button"))
	b.until(`document.querySelector("#blocked").hidden`)

	// A key of a row, by its hash.
	b.do(chromedp.Click("#top button.link"))
	b.until(`document.querySelector("#top tr.same .mono button").textContent === document.querySelector("#key").value`)
	b.do(chromedp.SetValue("#note", "ticket 7"), chromedp.Click("#block"))
	b.until(`document.querySelector("#blocks").textContent.includes("ticket 7")`)
	require.Equal(t, 1, s.users.Blocked()+s.partners.Blocked())

	// A mistyped key is banned only after a confirmation.
	b.do(chromedp.Click("#policies button.link"), chromedp.Click("#policies button.link"), typeKey("usr-0"), chromedp.Click("#block"))
	b.until(`document.querySelector("#key-says").textContent === "Not done: no request with this key has been seen: check the spelling. Click again to do it nevertheless."`)
	b.do(chromedp.Click("#reset"))
	b.until(`document.querySelector("#key-says").textContent.startsWith("Not done")`)
	b.do(typeKey("user-0"), chromedp.Click("#block"))
	b.until(`document.querySelector("#key-hash").textContent.includes("blocked for 60 min")`)
	b.do(chromedp.Click("#reset"))
	b.until(`document.querySelector("#key-hash").textContent.includes("forgiven")`)
	require.Equal(t, "Really? Limits nothing", js[string](b, switchOff))
	b.until(`document.querySelector("#policies td:last-child .badge").textContent === "off: limits nothing"`)
	require.True(t, isOff(s.users))
	b.until(`/^until .*; \(.*\); this process, until its restart$/.test(document.querySelector("#policies td:last-child small").textContent)`)
	require.Equal(t, "Reset: this process, until its restart. Block, Unblock: this process, until its restart. Limit: this process, until its restart", js[string](b, `document.querySelector("#scopes").textContent`))
	b.do(chromedp.Click("#policies tbody tr td:last-child button"))
	b.until(`document.querySelector("#policies td:last-child .badge").textContent === "on"`)
	require.False(t, isOff(s.users))

	// The action is on the time axis.
	b.until(`[...document.querySelectorAll("#traffic .mark title")].some((x) => x.textContent === "switch per-client")`)
	b.until(`/^[0-9.]+ (ms|µs) mean of 10 s$/.test([...document.querySelectorAll("#panels dt")].find((x) => x.textContent === "Time to Redis").nextSibling.textContent)`)

	// Redis goes, and comes back.
	s.redis.Kill()
	b.until(`document.querySelector("#panels").textContent.includes("degraded: Redis is away since ")`)
	s.redis.Restart()
	b.until(`document.querySelector("#panels").textContent.includes("healthy")`)

	// Nothing is wider than the screen, and nothing went anywhere else.
	for _, width := range []int64{1280, 390, 320} {
		b.size(width, 844, "dark")
		require.LessOrEqual(t, js[int64](b, `document.documentElement.scrollWidth`), width)
	}
	b.clean(s.url)
}

// clean checks that the tab sent requests only to the service, and that nothing
// went wrong in it.
func (b *tab) clean(service string) {
	b.t.Helper()
	requests, errors, dialogs := b.heard()
	require.Empty(b.t, errors)
	require.Zero(b.t, dialogs)
	home, err := url.Parse(service)
	require.NoError(b.t, err)
	require.NotEmpty(b.t, requests)
	for _, r := range requests {
		u, err := url.Parse(r)
		require.NoError(b.t, err)
		require.Equal(b.t, home.Host, u.Host, r)
		require.True(b.t, strings.HasPrefix(u.Path, home.Path), r)
	}
}

// Whatever names, keys, methods and errors contain, it is text.
func TestMarkupStaysText(t *testing.T) {
	const evil = `<img src=x onerror="alert(1)"><script>alert(2)</script></td><svg onload=alert(3)>`
	users := admin.Control(algo.Must(algo.NewTokenBucket(algo.PerSecond(4))))
	panel, err := admin.New(quiet(), admin.WithTitle(evil), admin.WithPolicy(evil, users), admin.WithAuthorize(func(*http.Request) error { return nil }))
	require.NoError(t, err)
	server := httptest.NewServer(panel)
	t.Cleanup(server.Close)
	for i, policy := range []string{evil, `javascript:alert(4)`, `{{evil}}`, `'"--></style>`} {
		panel.Observe(telemetry.Event{
			At: time.Now(), Policy: policy, Method: "/" + evil, Result: telemetry.FailedClosed, KeyHash: uint64(i + 1), Err: textError(evil),
			Sent: telemetry.Sent{Policy: evil, Limit: evil, Reset: evil},
		})
		panel.Observe(telemetry.Event{At: time.Now(), Policy: policy, Result: telemetry.Denied, KeyHash: uint64(i + 1)})
	}

	b := open(t)
	b.do(chromedp.Navigate(server.URL))
	b.until(`document.querySelector("#title").textContent === ` + quote(evil))
	b.until(`document.querySelectorAll("#policies tbody tr").length === 4`)
	b.do(chromedp.SetValue("#key", evil), chromedp.Click("#key-form .main"))
	b.until(`document.querySelector("#key-says").textContent.includes("4 of 4 left")`)
	b.do(chromedp.Click("#block"))
	b.until(`document.querySelector("#key-says").textContent.includes("Click again")`)
	b.do(chromedp.Click("#block"))
	b.until(`document.querySelector("#key-hash").textContent.includes("<img src=x")`)
	b.until(`document.querySelector("#blocks tbody tr") !== null`)
	require.Equal(t, 1, users.Blocked())
	b.until(`document.querySelector("#last").textContent.includes("error: " + ` + quote(evil) + `)`)
	b.until(`document.querySelector("#top").textContent.includes("<script>")`)
	require.Zero(t, js[int](b, `document.querySelectorAll("main img, main script, body script, [onerror], [onload], [style], style").length`))
	b.clean(server.URL + "/")
}

type textError string

func (e textError) Error() string { return string(e) }

// A site that the operator also visits can neither read nor act.
func TestAnotherSite(t *testing.T) {
	users := admin.Control(algo.Must(algo.NewTokenBucket(algo.PerSecond(4))))
	panel, err := admin.New(quiet(), admin.WithPolicy("p", users), admin.WithAuthorize(func(*http.Request) error { return nil }))
	require.NoError(t, err)
	server := httptest.NewServer(panel)
	t.Cleanup(server.Close)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!doctype html><title>other</title>")
	}))
	t.Cleanup(other.Close)

	b := open(t)
	b.do(chromedp.Navigate(other.URL))
	for name, init := range map[string]string{
		"read":         `"GET"`,
		"plain action": `"POST", body: '{"policy":"p","on":false}', headers: {"Content-Type": "text/plain"}`,
		"own action":   `"POST", body: '{"policy":"p","on":false}', headers: {"Content-Type": "application/json", "X-Sluice-Admin": "1"}`,
		"blind action": `"POST", mode: "no-cors", body: '{"policy":"p","on":false}'`,
	} {
		path := "/api/switch"
		if name == "read" {
			path = "/api/state"
		}
		b.do(chromedp.Evaluate[chromedp.Void](`window.said = ""; fetch(` + quote(server.URL+path) + `, {method: ` + init + `}).then((r) => { window.said = r.type; }, () => { window.said = "refused"; }); 0`))
		b.until(`window.said !== ""`)
		require.Contains(t, []string{"refused", "opaque"}, js[string](b, `window.said`), name)
		require.False(t, isOff(users), name)
	}

	// A name of the other site that points to this machine is refused too.
	u, err := url.Parse(server.URL)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(u.Host)
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodGet, "http://evil.example:"+port+"/api/state", nil)
	r.RemoteAddr = "127.0.0.1:1"
	w := httptest.NewRecorder()
	panel.ServeHTTP(w, r)
	require.Equal(t, http.StatusForbidden, w.Code)
}

// The page works while everything but the service is out of reach: Chromium may
// not even look up a name.
func TestWithoutANetwork(t *testing.T) {
	panel, err := admin.New(quiet(), admin.WithPolicy("p", algo.Must(algo.NewTokenBucket(algo.PerSecond(4)))))
	require.NoError(t, err)
	server := httptest.NewServer(panel)
	t.Cleanup(server.Close)
	b := open(t, chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"))
	b.do(chromedp.Navigate(server.URL))
	b.until(`document.querySelector("#live").textContent === "Live" && document.querySelector("#policies").textContent.includes("4 in 1 s")`)
	require.True(t, js[bool](b, `document.querySelector("header img").naturalWidth > 0 && getComputedStyle(document.body).maxWidth === "1400px"`))
	require.True(t, js[bool](b, `document.querySelector("#reset").disabled`), "actions are off")

	// The service goes away: the page says so, and keeps what it has.
	server.CloseClientConnections()
	server.Close()
	b.until(`document.querySelector("#live").textContent === "No answer" && !document.querySelector("#notice").hidden`)
	require.True(t, js[bool](b, `document.querySelector("#policies").textContent.includes("4 in 1 s")`))
}

func isOff(l *admin.Controlled) bool {
	off, _, _ := l.SwitchedOff()
	return off
}

// A page that is refused has no numbers: a zero would be taken for data.
func TestRefusedPageShowsNoZeros(t *testing.T) {
	s := stageScene(t, admin.WithAuthorizeRead(admin.Bearer(token)), admin.WithAuthorize(admin.Bearer(token)), quiet())
	b := open(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(s.url))
	b.until(`document.querySelector("#live").textContent === "Refused"`)
	require.Positive(t, js[int](b, `document.querySelectorAll(".legend b").length`))
	require.True(t, js[bool](b, `[...document.querySelectorAll(".legend b")].every((n) => n.textContent === "–")`))
}
