package browser

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/httpmw/admin"
)

// findings are what axe-core has against the page: rule, impact, and where.
const findings = `(() => {
	window.found = undefined;
	axe.run(document).then((r) => {
		window.found = r.violations.flatMap((v) => v.nodes.map((n) => [v.id, v.impact, n.target.join(" "), n.failureSummary].join(" | ")));
		window.rules = r.passes.length;
	}, (e) => { window.found = [String(e)]; });
	return true;
})()`

// accessible requires that axe-core finds nothing, at both widths and in both schemes.
func (b *tab) accessible(t *testing.T, page string) {
	t.Helper()
	source, err := os.ReadFile("axe/node_modules/axe-core/axe.min.js")
	require.NoError(t, err, "npm ci --prefix httpmw/admin/browser/axe installs it")
	js[bool](b, string(source)+`; typeof axe === "object"`)
	for _, width := range []int64{1280, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.size(width, 900, scheme)
			js[bool](b, findings)
			b.until(`window.found !== undefined`)
			require.Greater(t, js[int](b, `window.rules`), 15, "rules that were applied")
			require.Empty(t, js[[]string](b, `window.found`), "%s, %d px, %s", page, width, scheme)
		}
	}
}

// TestAxeAdmin applies the rules of axe-core to the admin page with everything on it: load,
// an overload, a blocked key, Redis away.
func TestAxeAdmin(t *testing.T) {
	s := stageScene(t, admin.WithAuthorize(admin.Bearer(token)), admin.WithClearKeys(), quiet())
	s.stage.Store(1)
	b := open(t)
	b.do(chromedp.Navigate(s.url))
	b.until(`document.querySelector("#top .mono button") !== null && document.querySelectorAll("#panels section").length === 2`)
	b.accessible(t, "as an onlooker sees it")
	b.do(chromedp.SendKeys("#token", token), chromedp.Click("#login button"), chromedp.Click("#top button.link"), chromedp.Click("#block"))
	b.until(`!document.querySelector("#blocked").hidden && document.querySelector("#fill svg") !== null`)
	s.redis.Kill()
	b.until(`document.querySelector("#panels").textContent.includes("degraded: Redis is away")`)
	b.accessible(t, "with a blocked key, without Redis")
}

// TestAxePlayground applies them to the playground.
func TestAxePlayground(t *testing.T) {
	b := open(t)
	b.do(chromedp.Navigate(playground(t)))
	b.until(`document.querySelectorAll("#grid article").length >= 8 && document.querySelector("#why") !== null`)
	b.accessible(t, "the playground")
}

// playground builds and runs the playground, and returns its URL.
func playground(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "playground")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Dir = "../../../programs/playground"
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	run := exec.Command(binary, "-http", "127.0.0.1:0")
	out, err := run.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	run.Stderr = &errs
	require.NoError(t, run.Start())
	t.Cleanup(func() { _ = run.Process.Kill(); _ = run.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if i := strings.Index(lines.Text(), "http://"); i >= 0 {
			return strings.Fields(lines.Text()[i:])[0]
		}
	}
	require.Fail(t, "the playground does not say where it serves", "%s", fmt.Sprint(&errs))
	return ""
}
