//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// served is the metrics of a gateway that has admitted, denied, lost Redis and asked an
// upstream, and of one that keeps its limits itself.
func served(t *testing.T) string {
	t.Helper()
	server := redistest.Start(t)
	u := upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	p := start(t, "store: redis\nredis: {addresses: ['"+server.Addr()+"']}\ntimeouts: {unready: 0s}\noverload: {max_in_flight: 100}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: ip, limit: 2/h}]}]\n")
	for range 4 {
		p.ask("/")
	}
	server.Kill()
	require.Eventually(t, func() bool { p.ask("/"); return strings.Contains(p.log.String(), "state=open") }, 20*time.Second, 5*time.Millisecond)
	p.ask("/")
	_, text := p.get(p.admin + "/metrics")

	p = start(t, "timeouts: {unready: 0s}\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: ip, limit: 2/h}]}]\n")
	p.ask("/")
	_, local := p.get(p.admin + "/metrics")
	return text + local
}

// queries are the PromQL expressions of the dashboard and of the alerts.
func queries(t *testing.T) (all []string) {
	t.Helper()
	var find func(v any)
	find = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				if text, ok := inner.(string); ok && k == "expr" {
					all = append(all, text)
				}
				find(inner)
			}
		case []any:
			for _, inner := range v {
				find(inner)
			}
		}
	}
	var dashboard, alerts any
	text, err := os.ReadFile("kit/grafana.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &dashboard))
	find(dashboard)
	text, err = os.ReadFile("kit/alerts.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Load(text, &alerts))
	find(alerts)
	return all
}

var (
	matchers  = regexp.MustCompile(`\{[^}]*\}|by \([^)]*\)|\[[^\]]*\]`)
	words     = regexp.MustCompile(`[a-z_][a-z_0-9]{2,}`)
	functions = regexp.MustCompile(`^(sum|unless|rate|max|min|time|changes|increase|histogram_quantile)$`)
	labels    = regexp.MustCompile(`([a-z_]+)(=~?)"([^"$]*)"`)
	grouped   = regexp.MustCompile(`by \(([^)]*)\)`)
)

// The dashboard and the alerts ask for metrics, labels and results that are there.
func TestKitKnowsTheMetrics(t *testing.T) {
	metrics := served(t)
	server, err := os.ReadFile("../rls/server.go") // the kit is that of both programs
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`Counter\("(rls_\w+)"`).FindAllStringSubmatch(string(server), -1) {
		metrics += "\n" + m[1] + " 0\n"
	}
	all := queries(t)
	require.Greater(t, len(all), 15)
	outcomes := regexp.MustCompile(`ratelimit_outcome="([^"]*)"`).FindAllStringSubmatch(metrics+`ratelimit_outcome="failed_open"`, -1)
	for _, q := range all {
		for _, word := range words.FindAllString(matchers.ReplaceAllString(q, ""), -1) {
			if !functions.MatchString(word) {
				require.Regexp(t, `(?m)^`+word+`[{ ]`, metrics, q)
			}
		}
		for _, m := range labels.FindAllStringSubmatch(q, -1) {
			if m[1] == "ratelimit_outcome" {
				pattern, found := regexp.MustCompile("^("+m[3]+")$"), false
				for _, is := range outcomes {
					found = found || pattern.MatchString(is[1])
				}
				require.True(t, found, q)
			} else if m[1] != "instance" { // which Prometheus adds
				require.Contains(t, metrics, m[1]+`="`, q)
			}
		}
		for _, m := range grouped.FindAllStringSubmatch(q, -1) {
			for _, label := range strings.Split(m[1], ", ") {
				if label != "instance" {
					require.Contains(t, metrics, label+`="`, q)
				}
			}
		}
	}
}

// Each code that a line of the log can have, and each alert, has its entry in
// the runbook.
func TestRunbook(t *testing.T) {
	text, err := os.ReadFile("kit/RUNBOOK.md")
	require.NoError(t, err)
	codes := regexp.MustCompile(`(?:"code", |\{)"((?:telemetry|gateway)\.[a-z-]+)"`)
	found := 0
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, code := range codes.FindAllStringSubmatch(string(source), -1) {
			found++
			require.Contains(t, string(text), "| `"+code[1]+"` |", path)
		}
		return err
	}))
	require.Greater(t, found, 6)
	alerts, err := os.ReadFile("kit/alerts.yaml")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`RUNBOOK.md#(\S+)`).FindAllStringSubmatch(string(alerts), -1) {
		require.Contains(t, strings.ToLower(string(text)), "### "+strings.ReplaceAll(m[1], "-", " ")+"\n")
	}
}

// The files of the gateway in the kit are right, and what they mount is there.
func TestKitConfigurations(t *testing.T) {
	compose, err := config.Load("kit/compose/gateway.yaml")
	require.NoError(t, err)
	require.Equal(t, []string{"redis:6379"}, compose.Store.Addresses)
	require.Empty(t, compose.Warnings)
	text, err := os.ReadFile("kit/compose.yaml")
	require.NoError(t, err)
	require.NotRegexp(t, `image: [^:\s]+\n`, string(text), "every image has a tag")
	for _, m := range regexp.MustCompile(`\./(\S+?):/`).FindAllStringSubmatch(string(text), -1) {
		_, err := os.Stat(filepath.Join("kit", m[1]))
		require.NoError(t, err)
	}

	for file, want := range map[string][]string{
		"kubernetes.yaml":         {"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"},
		"kubernetes-sidecar.yaml": {"ConfigMap", "Deployment", "Service"},
	} {
		require.Equal(t, want, kindsIn(t, "kit/"+file), file)
	}
}

// kindsIn checks the file of the gateway in manifests, the time that its pod has to end and
// the memory that it may use, and returns what the manifests describe.
func kindsIn(t *testing.T, path string) (kinds []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	type container struct {
		Name      string
		Image     string
		Env       []struct{ Name, Value string }
		Resources struct{ Limits struct{ Memory string } }
	}
	for _, doc := range strings.Split(string(text), "\n---\n") {
		var object struct {
			Kind string
			Data map[string]string
			Spec struct {
				Template struct {
					Spec struct {
						Grace      int         `yaml:"terminationGracePeriodSeconds"`
						Init       []container `yaml:"initContainers"`
						Containers []container
						Volumes    []struct {
							Secret struct {
								Name string `yaml:"secretName"`
							}
						}
					}
				}
			}
		}
		require.NoError(t, yaml.Load([]byte(doc), &object))
		kinds = append(kinds, object.Kind)
		if file := object.Data["gateway.yaml"]; file != "" {
			f, err := config.Parse("gateway.yaml", []byte(file))
			require.NoError(t, err)
			require.Empty(t, f.Warnings)
			require.NotEmpty(t, f.Trusted, "there is an ingress")
			for _, p := range f.Trusted {
				require.GreaterOrEqual(t, p.Bits(), 24, "%s: every pod in it could choose its key", p)
			}
			for _, secret := range []config.Secret{f.AdminToken, f.Pepper} {
				if !secret.IsZero() {
					require.Contains(t, string(text), "--from-literal="+filepath.Base(secret.File)+"=", "the Secret is made")
				}
			}
			require.Equal(t, 45*time.Second, f.Timeouts.Unready+f.Timeouts.Drain+5*time.Second)
		}
		if object.Kind != "Deployment" {
			continue
		}
		pod := object.Spec.Template.Spec
		require.Equal(t, 45, pod.Grace)
		for _, v := range pod.Volumes {
			if v.Secret.Name != "" {
				require.Contains(t, string(text), "kubectl create secret generic "+v.Secret.Name+" ")
			}
		}
		for _, c := range append(pod.Init, pod.Containers...) {
			require.Regexp(t, `^[^:]+/[^:]+:v\d`, c.Image, "a registry and a tag")
			if c.Name == "gateway" {
				var soft, hard int
				_, err := fmt.Sscanf(c.Env[0].Value, "%dMiB", &soft)
				require.NoError(t, err, "GOMEMLIMIT")
				_, err = fmt.Sscanf(c.Resources.Limits.Memory, "%dMi", &hard)
				require.NoError(t, err)
				require.InDelta(t, 0.8, float64(soft)/float64(hard), .02)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// The questions of 3 a.m. are ten, and what answers them is there under its name: on the page,
// on the dashboard, in the log.
func TestQuestions(t *testing.T) {
	text, err := os.ReadFile("kit/RUNBOOK.md")
	require.NoError(t, err)
	var page, dashboard, source string
	read := func(to *string, pattern string) {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, f := range files {
			data, err := os.ReadFile(f)
			require.NoError(t, err)
			*to += string(data)
		}
	}
	read(&page, "../../httpmw/admin/page/*")
	read(&page, "../../httpmw/admin/*.go") // marks
	read(&dashboard, "kit/grafana.json")
	for _, folder := range []string{"*", "*/*", "../../httpmw/admin/*", "../../distributed/*", "../../algo/telemetry/eventlog/*"} {
		read(&source, folder+".go")
	}
	source += "code=telemetry.denied blocked=true key policy"
	questions := regexp.MustCompile(`(?m)^\| ([A-Z][^|]*\?) \| (.*) \|$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, questions, 10)
	named, code := regexp.MustCompile(`"([^"]+)"`), regexp.MustCompile("`([^`]+)`")
	for _, q := range questions {
		for _, answer := range strings.Split(q[2], "; ") {
			for _, name := range named.FindAllStringSubmatch(answer, -1) {
				switch {
				case strings.Contains(answer, "Grafana"):
					require.Contains(t, dashboard, `"title": "`+name[1]+`"`, q[1])
				case name[1] == "since":
					require.Contains(t, page, "` since ${", q[1])
				default:
					require.Contains(t, page, name[1], q[1])
				}
			}
			if strings.Contains(answer, "log: ") {
				for _, name := range code.FindAllStringSubmatch(answer, -1) {
					require.Contains(t, source, name[1], q[1])
				}
			}
		}
	}
}
