package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const own = "github.com/sluice-go/sluice"

// published gives commands an empty HOME and a module proxy from the file system, which has what the go
// command makes of the tags of dir; it returns the modules.
func published(t *testing.T, dir string) (modules []string) {
	t.Helper()
	proxies := "file://" + strings.TrimSpace(run(t, ".", "go", "env", "GOMODCACHE")) + "/cache/download," + strings.TrimSpace(run(t, ".", "go", "env", "GOPROXY"))
	t.Setenv("GOCACHE", strings.TrimSpace(run(t, ".", "go", "env", "GOCACHE"))) // what was compiled before is of no weight here
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GOPATH", "")
	t.Setenv("GOENV", "off")
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-modcacherw -trimpath") // -trimpath: what the release compiled serves here
	t.Setenv("GONOSUMDB", own)
	t.Setenv("GOPROXY", proxies)
	fetched := t.TempDir()
	for _, tag := range strings.Fields(run(t, dir, "git", "tag", "--points-at", "v0.987.0^{}")) {
		modules = append(modules, strings.TrimSuffix(own+"/"+strings.TrimSuffix(tag, "v0.987.0"), "/"))
	}
	download := []string{"GOMODCACHE=" + fetched, "GOPRIVATE=" + own, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + dir + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + own, "go", "mod", "download"}
	for _, m := range modules {
		download = append(download, m+"@v0.987.0")
	}
	run(t, t.TempDir(), "env", download...)
	t.Setenv("GOPROXY", "file://"+fetched+"/cache/download,"+proxies)
	return modules
}

// TestTagBuilds: every module builds from the archive, whose files are those of the tag, with the checksums that it has; users get
// each; and go install makes the programs of the tags.
func TestTagBuilds(t *testing.T) {
	dir := clone(t, "\n- A new thing.\n")
	t.Setenv("PLATFORMS", " ") // TestRelease makes the archives of the programs
	run(t, dir, "sh", "internal/release/release.sh", "v0.987.0")
	to := t.TempDir()
	run(t, dir, "tar", "-xzf", "dist/sluice-v0.987.0.tar.gz", "-C", to)
	modules := published(t, dir)
	root := filepath.Join(to, "sluice-v0.987.0")
	for _, file := range strings.Fields(run(t, dir, "git", "ls-tree", "-r", "--name-only", "v0.987.0")) {
		if filepath.Base(file) != "go.mod" {
			continue
		}
		t.Run(filepath.Dir(file), func(t *testing.T) {
			if out, err := try(filepath.Join(root, filepath.Dir(file)), "go", "build", "./..."); err != nil {
				t.Error(out)
			}
		})
	}
	for _, m := range modules {
		user := t.TempDir()
		run(t, user, "go", "mod", "init", "example.org/user")
		if out, err := try(user, "go", "get", m+"@v0.987.0"); err != nil {
			t.Errorf("go get %s: %s", m, out)
		}
	}
	for _, program := range []string{"gateway", "rls", "plan"} {
		if out, err := try(to, "go", "install", own+"/programs/"+program+"@v0.987.0"); err != nil {
			t.Errorf("go install %s: %s", program, out)
		}
		if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), "go/bin", program)); err != nil {
			t.Error(err)
		}
	}
	for _, line := range []string{
		"go run ./examples/quickstart -exit -http 127.0.0.1:0 -grpc 127.0.0.1:0", "go run -C programs/playground . -exit -http 127.0.0.1:0",
		"go run -C programs/gateway . -check", "go run -C programs/rls . -check",
	} {
		if out, err := try(root, "sh", "-c", line); err != nil {
			t.Errorf("%s: %s", line, out)
		}
	}
}
