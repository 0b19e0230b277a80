//go:build pictures

package browser

import (
	"image/png"
	"os"
	"path/filepath"
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
