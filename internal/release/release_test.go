package release

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// clone is a copy of the repository with unreleased in its CHANGELOG.
func clone(t *testing.T, unreleased string) string {
	t.Helper()
	root, dir := strings.TrimSpace(run(t, ".", "git", "rev-parse", "--show-toplevel")), t.TempDir()
	run(t, dir, "git", "clone", "-q", root, "copy")
	dir = filepath.Join(dir, "copy")
	run(t, dir, "git", "config", "user.email", "release@example.org")
	run(t, dir, "git", "config", "user.name", "release")
	run(t, dir, "git", "config", "tag.gpgSign", "false")
	// The script as it is here, committed or not.
	for _, name := range []string{"release.sh", "go.mod", "go.sum", "image/main.go", "sums/main.go"} {
		text, err := os.ReadFile(name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(dir, "internal/release", name)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "internal/release", name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "CHANGELOG.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	released := strings.Replace(string(text), "## Unreleased", "## Unreleased\n"+unreleased+"\n## v0.986.0", 1)
	if err := os.WriteFile(page, []byte(released), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "git", "add", "-A")
	run(t, dir, "git", "commit", "-qm", "A version")
	return dir
}

// run returns the output of a command that must succeed.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	text, err := try(dir, name, args...)
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, text)
	}
	return text
}

func try(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestRelease makes a release of a copy: the files, the tag, and the rejected
// cases.
func TestRelease(t *testing.T) {
	t.Setenv("GIT_AUTHOR_DATE", "2030-01-01T00:00:00Z") // for the same commits in two copies
	t.Setenv("GIT_COMMITTER_DATE", "2030-01-01T00:00:00Z")
	dir := clone(t, "")
	refused := func(version, because string) {
		t.Helper()
		if out, err := try(dir, "sh", "internal/release/release.sh", version); err == nil || !strings.Contains(out, because) {
			t.Fatalf("%s: %v, want %q:\n%s", version, err, because, out)
		}
	}
	refused("1.2", "not a version")
	refused("v0.987.0", "nothing under")
	dir = clone(t, "\n- A new thing.\n")
	if err := os.WriteFile(filepath.Join(dir, "new.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused("v0.987.0", "not clean")
	if err := os.Remove(filepath.Join(dir, "new.txt")); err != nil {
		t.Fatal(err)
	}

	address := serve(t)
	t.Setenv("PLATFORMS", "linux/amd64 linux/arm64") // others take long with a cold cache
	t.Log(run(t, dir, "sh", "internal/release/release.sh", "v0.987.0"))
	refused("v0.987.0", "exists")
	if at := run(t, dir, "git", "tag", "--points-at", "HEAD~1"); at != "algo/telemetry/otelmetrics/v0.987.0\ndistributed/rueidisstore/v0.987.0\ndropin/v0.987.0\nhttpmw/admin/v0.987.0\nprograms/gateway/v0.987.0\nprograms/plan/v0.987.0\nprograms/rls/v0.987.0\nv0.987.0\n" {
		t.Fatalf("tags: %q", at)
	}
	for _, m := range []string{"httpmw/admin", "algo/telemetry/otelmetrics", "distributed/rueidisstore", "dropin", "programs/gateway", "programs/plan"} {
		if got := run(t, filepath.Join(dir, m), "go", "list", "-mod=readonly", "-m", "-f", "{{.Version}}", "github.com/sluice-go/sluice"); got != "v0.987.0\n" {
			t.Errorf("%s requires %q", m, got)
		}
	}
	if page := run(t, dir, "cat", "CHANGELOG.md"); !strings.Contains(page, "## Unreleased\n\n## v0.987.0 - 20") {
		t.Error("the CHANGELOG has no heading of the version")
	}
	run(t, filepath.Join(dir, "dist"), "sha256sum", "--check", "--strict", "SHA256SUMS")
	if notes := run(t, dir, "cat", "dist/notes.md"); strings.TrimSpace(notes) != "- A new thing." {
		t.Fatalf("notes: %q", notes)
	}
	if list := run(t, dir, "tar", "-tzf", "dist/sluice-v0.987.0.tar.gz"); !strings.Contains(list, "sluice-v0.987.0/algo/limiter.go\n") {
		t.Fatal("the archive lacks files")
	}
	checkSBOM(t, dir)
	checkPrograms(t, dir)
	checkImages(t, dir, address)
	checkSame(t, dir)
}

// checkPrograms: the archives have the programs that go install makes of the tags, static, with the
// version and the licenses.
func checkPrograms(t *testing.T, dir string) {
	t.Helper()
	for _, program := range []string{"gateway", "rls"} {
		to, name := t.TempDir(), "sluice-"+program+"-v0.987.0"
		platform := name + "-linux-" + runtime.GOARCH
		run(t, dir, "tar", "-xzf", "dist/"+platform+".tar.gz", "-C", to)
		binary := filepath.Join(to, platform, program)
		if said := run(t, dir, binary, "-version"); !strings.HasPrefix(said, program+" v0.987.0 go") {
			t.Errorf("%s -version: %s", program, said)
		}
		if said := run(t, dir, binary, "-config", filepath.Join(to, platform, program+".yaml"), "-check"); !strings.Contains(said, ": ok, ") {
			t.Error(said)
		}
		about := run(t, dir, "go", "version", "-m", binary)
		for _, line := range []string{"\tmod\tgithub.com/sluice-go/sluice/programs/" + program + "\tv0.987.0\th1:", "\tdep\tgithub.com/sluice-go/sluice\tv0.987.0\th1:", "CGO_ENABLED=0", "-trimpath=true"} {
			if !strings.Contains(about, line) {
				t.Errorf("%s lacks %q:\n%s", program, line, about)
			}
		}
		licenses := run(t, dir, "cat", filepath.Join(to, platform, "LICENSES"))
		for _, of := range strings.Split(licenses, "\n== ") {
			if module, text, _ := strings.Cut(of, "\n"); len(text) < 200 {
				t.Errorf("%s: no license", module)
			}
		}
	}
}

// sbom reads a list: each of its modules with its version, the version of the whole, and whether all have hashes.
func sbom(t *testing.T, path string) map[string]bool {
	t.Helper()
	var list struct {
		Metadata   struct{ Component struct{ Version string } }
		Components []struct {
			Name, Version string
			Hashes        []struct{ Content string }
		}
	}
	if err := json.Unmarshal(must(os.ReadFile(path)), &list); err != nil {
		t.Fatal(path, err)
	}
	if list.Metadata.Component.Version != "v0.987.0" {
		t.Fatalf("%s: version: %q", path, list.Metadata.Component.Version)
	}
	listed := map[string]bool{}
	for _, c := range list.Components {
		if len(c.Hashes) == 0 && c.Name != "std" {
			t.Errorf("%s has no hash", c.Name)
		}
		listed[c.Name+"@"+c.Version] = true
	}
	return listed
}

// checkSBOM: the list of the library has the modules that its packages link, and that of each program what
// the compiler recorded in it.
func checkSBOM(t *testing.T, dir string) {
	t.Helper()
	linked := map[string][]string{"sluice-v0.987.0": strings.Fields(run(t, dir, "go", "list", "-deps", "-f", "{{with .Module}}{{if .Version}}{{.Path}}@{{.Version}}{{end}}{{end}}",
		"./algo/...", "./adaptive", "./distributed/...", "./grpcmw", "./httpmw", "./keyfunc/..."))}
	for _, program := range []string{"gateway", "rls"} {
		for _, architecture := range architectures {
			to, name := t.TempDir(), "sluice-"+program+"-v0.987.0-linux-"+architecture
			run(t, dir, "tar", "-xzf", "dist/"+name+".tar.gz", "-C", to)
			for line := range strings.Lines(run(t, to, "go", "version", "-m", filepath.Join(name, program))) {
				if is := strings.Fields(line); is[0] == "dep" {
					linked[name] = append(linked[name], is[1]+"@"+is[2])
				}
			}
			linked[name] = append(linked[name], "std@"+runtime.Version())
		}
	}
	for name, modules := range linked {
		listed := sbom(t, filepath.Join(dir, "dist", name+".cdx.json"))
		for _, m := range modules {
			if !listed[m] {
				t.Errorf("%s lacks %s", name, m)
			}
		}
		if len(modules) < 5 {
			t.Errorf("%s: %v", name, modules)
		}
	}
}
