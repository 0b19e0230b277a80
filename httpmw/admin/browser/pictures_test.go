//go:build pictures

package browser

import (
	"bufio"
	"context"
	"fmt"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/httpmw/admin"
)

// TestPictures takes the pictures in docs/admin over five minutes of load:
// checkout is overloaded after one minute for two, and Redis is gone for
// fifty seconds. PICTURES names the folder; PICTURES_PACE=50ms
// makes a second of it as short, for those who change the page.
func TestPictures(t *testing.T) {
	folder := os.Getenv("PICTURES")
	require.NotEmpty(t, folder)
	pace := time.Second
	if fast := os.Getenv("PICTURES_PACE"); fast != "" {
		var err error
		pace, err = time.ParseDuration(fast)
		require.NoError(t, err)
	}
	s := stageScene(t, admin.WithAuthorize(admin.Bearer(token)))
	b := open(t)
	wait := func(until int) { time.Sleep(time.Until(s.begun.Add(time.Duration(until) * pace))) }
	save := func(name, from string, height float64) { b.picture(filepath.Join(folder, name), from, height) }

	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(s.url), chromedp.SendKeys("#token", token), chromedp.Click("#login button"))
	b.until(`document.querySelectorAll("#policies tbody tr").length >= 5 && document.querySelectorAll("#panels section").length === 2`)
	b.do(chromedp.SetValue("#key", "user-1"), chromedp.Click("#key-form .main"))
	b.until(`document.querySelector("#key-says").textContent.includes("left")`)
	b.do(chromedp.SetValue("#limit", "1200/min burst 40"), chromedp.SetValue("#note", "ticket 8"), chromedp.Click("#adjust"))
	b.until(`document.querySelector("#blocks").textContent.includes("1200/min burst 40")`)

	wait(60)
	s.stage.Store(1)
	wait(165)
	s.redis.Kill()
	wait(170)
	b.until(`document.querySelector("#panels").textContent.includes("degraded: Redis is away")`)
	save("overload-and-redis-away.png", "#panels section", 480)
	wait(180)
	s.stage.Store(0)
	wait(215)
	s.redis.Restart()
	wait(285)
	b.until(`document.querySelector("#panels").textContent.includes("healthy")`)

	save("page-light.png", "", 1180)
	save("decisions.png", "#last", 420)
	b.size(1280, 900, "dark")
	save("page-dark.png", "", 1180)
	save("redis-back.png", "#panels section", 440)
	b.size(390, 844, "light")
	save("phone-light.png", "", 1700)
	b.size(390, 844, "dark")
	save("phone-dark.png", "#panels section", 1700)

	checkPictures(t, folder)
}

func checkPictures(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.png"))
	require.NoError(t, err)
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(150_000), f)
		r, err := os.Open(f)
		require.NoError(t, err)
		_, err = png.Decode(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
}

// TestGatewayPicture takes docs/admin/gateway.png: the page of programs/gateway under a load
// of many callers, of whom few send most.
func TestGatewayPicture(t *testing.T) {
	folder := os.Getenv("PICTURES")
	require.NotEmpty(t, folder)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { time.Sleep(5 * time.Millisecond) }))
	t.Cleanup(upstream.Close)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	t.Setenv("PICTURE_TOKEN", token)
	require.NoError(t, os.WriteFile(file, []byte(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
admin_token: {env: PICTURE_TOKEN}
trusted_proxies: [127.0.0.0/8]
show_keys: true
timeouts: {unready: 0s}
limits:
  - {name: everybody, key: global, limit: 1000/s}
routes:
  - pattern: /
    upstream: `+upstream.URL+`
    limits: [everybody, {name: per-client, key: ip, limit: 5/s burst 20}]
  - pattern: POST /login
    upstream: `+upstream.URL+`
    limits: [everybody, {name: login, key: ip, limit: sliding-log 5/min}]
  - pattern: /api/
    upstream: `+upstream.URL+`
    in_flight: 100
    limits: [everybody, {name: api-per-key, key: "secret:X-Api-Key", limit: 600/min burst 50}]
`), 0o600))
	front, back := gateway(t, file)
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer stop()
	for range 8 {
		clients.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(time.Duration(rand.ExpFloat64() * float64(80*time.Millisecond)))
				who := int(60 * math.Pow(rand.Float64(), 3))
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, front+"/", nil)
				if n := rand.IntN(10); n == 0 {
					r, err = http.NewRequestWithContext(ctx, http.MethodPost, front+"/login", nil)
				} else if n < 4 {
					r, err = http.NewRequestWithContext(ctx, http.MethodGet, front+"/api/items", nil)
				}
				if err != nil {
					continue
				}
				r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", who))
				r.Header.Set("X-Api-Key", fmt.Sprint("key-", who))
				if resp, err := http.DefaultClient.Do(r); err == nil {
					_ = resp.Body.Close()
				}
			}
		})
	}
	b := open(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(back), chromedp.SendKeys("#token", token), chromedp.Click("#login button"))
	b.until(`document.querySelector("#h-traffic").textContent === "Requests per second"`)
	time.Sleep(150 * time.Second)
	js[bool](b, `document.querySelector("#top button.link").click() || true`)
	js[bool](b, `document.querySelector("#block").click() || true`)
	b.until(`!document.querySelector("#blocked").hidden`)
	time.Sleep(20 * time.Second)
	b.picture(filepath.Join(folder, "gateway.png"), "", 1180)
	checkPictures(t, folder)
}

// gateway builds and runs the gateway, and returns its URLs.
func gateway(t *testing.T, file string) (front, back string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "gateway")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "../../../programs/gateway"
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	run := exec.Command(binary, "-config", file)
	log, err := run.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, run.Start())
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
	serving := regexp.MustCompile(`msg=serving listen=(\S+) admin=(\S+)`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return "http://" + m[1], "http://" + m[2]
		}
	}
	require.Fail(t, "the gateway does not serve")
	return "", ""
}
