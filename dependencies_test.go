package sluice_test

import (
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// links are the modules that each package may link, with those that these need.
var links = map[string][]string{
	"./algo":                    {},
	"./keyfunc":                 {},
	"./algo/telemetry":          {},
	"./algo/telemetry/eventlog": {},
	"./httpmw":                  {},
	"./adaptive":                {"golang.org/x/sys"},
	"./adaptive/throttle":       {"golang.org/x/sys"},
	"./adaptive/strategy": {"github.com/shirou/gopsutil/v3", "github.com/tklauser/go-sysconf",
		"github.com/tklauser/numcpus", "golang.org/x/sys"},
	"./keyfunc/rpckey": {"golang.org/x/sys", "google.golang.org/grpc", "google.golang.org/protobuf"},
	"./grpcmw": {"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
		"google.golang.org/genproto/googleapis/rpc", "google.golang.org/grpc", "google.golang.org/protobuf"},
	"./distributed/rules": {"github.com/cespare/xxhash/v2", "github.com/redis/go-redis/v9", "go.uber.org/atomic", "golang.org/x/sys"},
}

// TestPackagesLinkLittle: no package links more than its modules, on any system.
func TestPackagesLinkLittle(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		needs, modules := linked(t, system)
		for dir, allowed := range links {
			deps := needs[path.Join("github.com/sluice-go/sluice", dir)]
			require.NotEmpty(t, deps, dir)
			for _, dep := range deps {
				module := modules[dep]
				if module == "" || strings.HasPrefix(module, "github.com/sluice-go/") || system != "linux" && ofSystem[module] && dir == "./adaptive/strategy" {
					continue
				}
				require.True(t, slices.Contains(allowed, module), "%s links %s on %s", dir, module, system)
			}
		}
	}
}

// linked returns what each package needs on a system, and the module of each.
func linked(t *testing.T, system string) (needs map[string][]string, modules map[string]string) {
	const format = `{{.ImportPath}};{{with .Module}}{{.Path}}{{end}};{{join .Deps " "}}`
	cmd := exec.Command("go", append([]string{"list", "-deps", "-f", format}, slices.Collect(maps.Keys(links))...)...)
	cmd.Env = append(cmd.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	out, err := cmd.Output()
	require.NoError(t, err)
	needs, modules = map[string][]string{}, map[string]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.SplitN(line, ";", 3)
		modules[words[0]], needs[words[0]] = words[1], strings.Fields(words[2])
	}
	return needs, modules
}

// ofSystem are what gopsutil needs on systems other than Linux.
var ofSystem = map[string]bool{"github.com/yusufpapurcu/wmi": true, "github.com/go-ole/go-ole": true, "github.com/shoenig/go-m1cpu": true}

// TestRequirementsAreExplained: the page names what go.mod requires.
func TestRequirementsAreExplained(t *testing.T) {
	direct, _, _ := strings.Cut(read(t, "go.mod"), ")")
	page := read(t, "COMPATIBILITY.md")
	modules := regexp.MustCompile(`(?m)^\t(\S+) v`).FindAllStringSubmatch(direct, -1)
	require.NotEmpty(t, modules)
	for _, m := range modules {
		require.Contains(t, page, "`"+m[1]+"`")
	}
}

// TestUnusedAlgorithmsAreNotLinked: a program with a token bucket links its decision alone.
func TestUnusedAlgorithmsAreNotLinked(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	out, err := exec.Command("go", "build", "-o", program, "./examples/http").CombinedOutput()
	require.NoError(t, err, string(out))
	symbols, err := exec.Command("go", "tool", "nm", program).Output()
	require.NoError(t, err)
	for _, decision := range regexp.MustCompile(`internal/decide\.\(\*(\w+)\)\.Answer\b`).FindAllSubmatch(symbols, -1) {
		require.Equal(t, "GCRA", string(decision[1]))
	}
}
