//go:build site

package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const dist = "../../../site/dist"

// serveSite serves the built site as its host does: a path without .html is that page.
func serveSite(t *testing.T) string {
	t.Helper()
	require.FileExists(t, dist+"/index.html", "make site builds it")
	files := http.FileServer(http.Dir(dist))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := os.Stat(filepath.Join(dist, r.URL.Path+".html")); err == nil && r.URL.Path != "/" {
			http.ServeFile(w, r, filepath.Join(dist, r.URL.Path+".html"))
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestSite clicks through the site: each page of the sidebar has a heading, raises no error,
// fits a phone and asks no other host. PICTURES names a folder for pictures.
func TestSite(t *testing.T) {
	url := serveSite(t)
	b := open(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(url + "/"))
	b.until(`document.querySelector('.VPFeatures a[href="/docs/evidence"]') !== null && document.images.length > 0`)
	b.looks(t, "site")
	js[bool](b, `document.querySelector('.VPHero a[href="/README"]').click() || true`)
	b.until(`document.querySelectorAll(".VPSidebar a").length > 20`)
	links := js[[]string](b, `[...new Set([...document.querySelectorAll(".VPSidebar a")].map(a => a.getAttribute("href")))]`)
	shown := []string{"/README", "/docs/guides/http", "/docs/guides/algorithms", "/docs/guides/redis", "/docs/evidence", "/docs/guides/fairness", "/docs/admin/"}
	for _, page := range shown {
		require.Contains(t, links, page)
	}
	guides, err := filepath.Glob("../../../docs/guides/*.md")
	require.NoError(t, err)
	for _, page := range guides {
		require.Contains(t, links, strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(page, "../../.."), ".md"), "README"), "the sidebar lists every guide")
	}
	for _, link := range links {
		js[bool](b, `document.querySelector('.VPSidebar a[href="`+link+`"]').click() || true`)
		b.until(`location.pathname.replace(/\.html$/, "") === "` + link + `" && document.querySelector("main h1") !== null`)
		require.False(t, js[bool](b, `document.body.innerText.includes("PAGE NOT FOUND")`), link)
		b.until(`[...document.images].every(i => i.loading === "lazy" || i.complete && i.naturalWidth > 0)`)
		if slices.Contains(shown, link) {
			b.looks(t, "site"+strings.ReplaceAll(link, "/", "-"))
		}
	}
	b.quiet(t, url)
}

// TestSitePlayground: the limiters run in the page; the settings stand in the address, and
// are copied as Go and as YAML.
func TestSitePlayground(t *testing.T) {
	url := serveSite(t)
	b := open(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(url + "/"))
	b.until(`document.querySelector('.VPNav a[href="/playground/"]') !== null`)
	js[bool](b, `document.querySelector('.VPNav a[href="/playground/"]').click() || true`)
	b.until(`location.pathname === "/playground/" && document.querySelectorAll("article").length === 11`)
	figures := `document.querySelector("#token-bucket .figures").textContent`
	before := js[string](b, figures)
	js[bool](b, `(limit.value = 7, limit.dispatchEvent(new Event("input", {bubbles: true})))`)
	b.until(`location.hash.includes("limit=7")`)
	require.NotEqual(t, before, js[string](b, figures))
	js[bool](b, `(navigator.clipboard.writeText = async (text) => { window.copied = text; }, true)`)
	for i, want := range []string{"algo.NewTokenBucket(algo.PerSecond(7), algo.Burst(12))", "limits:\n  - name: per-client\n    key: ip\n    limit: 7/s burst 12\n"} {
		js[bool](b, `document.querySelectorAll("#token-bucket button")[`+string(rune('0'+i))+`].click() || true`)
		b.until(`window.copied !== undefined`)
		require.Equal(t, want, js[string](b, `window.copied`))
		js[bool](b, `delete window.copied`)
	}
	require.Equal(t, "https://pkg.go.dev/github.com/sluice-go/sluice/algo#NewTokenBucket", js[string](b, `document.querySelector("#token-bucket a").href`))
	require.Equal(t, 11, js[int](b, `document.querySelectorAll("article a").length`))
	after := js[string](b, figures)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"/playground/#load=burst&rate=30&limit=7&burst=12"))
	b.until(`document.querySelectorAll("article").length === 11`)
	require.Equal(t, after, js[string](b, figures), "the address keeps the settings")
	b.looks(t, "playground")
	b.accessible(t, "the site's playground")
	b.quiet(t, url)
}

// TestSiteOverload: the simulator runs in the page, a limit keeps what none loses, and the
// settings stand in the address.
func TestSiteOverload(t *testing.T) {
	url := serveSite(t)
	b := open(t)
	b.size(1280, 900, "light")
	b.do(chromedp.Navigate(url + "/playground/"))
	js[bool](b, `document.querySelector('a[href="/playground/overload"]').click() || true`)
	b.until(`location.pathname === "/playground/overload" && document.querySelectorAll("article").length === 6`)
	kept := func(name string) float64 {
		return js[float64](b, `parseFloat(document.querySelector("#`+name+` .figures").textContent)`)
	}
	require.Less(t, kept("none"), 20.0)
	require.Greater(t, kept("RunQueue"), 85.0)
	for _, handler := range []string{"30ms", "100ms", "io", "mix"} {
		js[bool](b, `document.querySelector('[value="`+handler+`"]').click() || true`)
		b.until(`location.hash.includes("handler=` + handler + `")`)
		require.Greater(t, kept("RunQueue"), 85.0, handler)
	}
	js[bool](b, `(load.value = 8, load.dispatchEvent(new Event("input", {bubbles: true})))`)
	b.until(`location.hash.includes("load=8")`)
	figures := js[string](b, `document.querySelector("#Vegas .figures").textContent`)
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url+"/playground/overload#handler=mix&load=8&fixed=20"))
	b.until(`document.querySelectorAll("article").length === 6`)
	require.Equal(t, figures, js[string](b, `document.querySelector("#Vegas .figures").textContent`))
	b.looks(t, "overload")
	b.quiet(t, url)
}

// looks checks that a page fits, and takes its pictures.
func (b *tab) looks(t *testing.T, name string) {
	t.Helper()
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"dark", "light"} {
			b.size(width, 900, scheme)
			require.LessOrEqual(t, js[int](b, `document.documentElement.scrollWidth`), int(width), "%s is wider than %d px", name, width)
			if folder := os.Getenv("PICTURES"); folder != "" {
				b.picture(filepath.Join(folder, name+"-"+scheme+map[int64]string{390: "-phone"}[width]+".png"), "", 1600)
			}
		}
	}
}

// quiet: no script failed, and no other host was asked.
func (b *tab) quiet(t *testing.T, url string) {
	t.Helper()
	requests, errors, _ := b.heard()
	require.Empty(t, errors)
	for _, r := range requests {
		require.True(t, strings.HasPrefix(r, url) || strings.HasPrefix(r, "data:") || strings.HasPrefix(r, "about:"), r)
	}
}
