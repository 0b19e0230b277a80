package release

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var architectures = []string{"amd64", "arm64"}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// serve is a registry with an image for BASE, which has certificates and users, and runs a shell as root.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	index := v1.ImageIndex(empty.Index)
	for _, architecture := range architectures {
		image := must(crane.Image(map[string][]byte{"etc/passwd": nil, "etc/ssl/certs/ca-certificates.crt": nil}))
		config := must(image.ConfigFile()).DeepCopy()
		config.OS, config.Architecture, config.Config = "linux", architecture, v1.Config{User: "root", Cmd: []string{"sh"}, Env: []string{"PATH=/"}}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: must(mutate.ConfigFile(image, config)), Descriptor: v1.Descriptor{Platform: config.Platform()}})
	}
	address := strings.TrimPrefix(server.URL, "http://")
	t.Setenv("BASE", address+"/base:nonroot")
	if err := remote.WriteIndex(must(name.ParseReference(os.Getenv("BASE"))), index); err != nil {
		t.Fatal(err)
	}
	return address
}

// checkImages: the pushed images have the base and the programs of the archives, and run them, not as root.
func checkImages(t *testing.T, dir, address string) {
	t.Helper()
	run(t, dir, "make", "push-images", "VERSION=v0.987.0", "REGISTRY="+address)
	base := must(crane.Digest(os.Getenv("BASE")))
	for _, program := range []string{"gateway", "rls"} {
		ref := must(name.ParseReference(address + "/sluice-" + program + ":v0.987.0"))
		if err := validate.Index(must(remote.Index(ref))); err != nil { // digests, and the platform of each
			t.Error(err)
		}
		for _, architecture := range architectures {
			image := must(remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: architecture})))
			c := must(image.ConfigFile()).Config
			got := fmt.Sprintf("%v %v %v %v %v", c.User, c.Env, c.Entrypoint, c.Cmd, c.Labels)
			if want := fmt.Sprintf("65532:65532 [PATH=/] [/%[1]s -config /etc/%[1]s/%[1]s.yaml] [] map[org.opencontainers.image.base.digest:%[2]s "+
				"org.opencontainers.image.licenses:MIT org.opencontainers.image.source:https://github.com/sluice-go/sluice "+
				"org.opencontainers.image.title:sluice-%[1]s org.opencontainers.image.version:v0.987.0]", program, base); got != want {
				t.Errorf("%s for %s:\n%s, want\n%s", program, architecture, got, want)
			}
			to, archive := t.TempDir(), "sluice-"+program+"-v0.987.0-linux-"+architecture
			file := must(os.Create(filepath.Join(to, "image.tar")))
			must(io.Copy(file, mutate.Extract(image)))
			file.Close()
			run(t, to, "tar", "-xf", "image.tar", program, program+".cdx.json", "LICENSE", "LICENSES", "etc/passwd", "etc/ssl/certs/ca-certificates.crt")
			run(t, to, "tar", "-xzf", filepath.Join(dir, "dist", archive+".tar.gz"))
			run(t, to, "cmp", program, filepath.Join(archive, program))
			run(t, to, "cmp", program+".cdx.json", filepath.Join(dir, "dist", archive+".cdx.json"))
			if list := run(t, to, "tar", "-tvf", "image.tar", program); !strings.HasPrefix(list, "-rwxr-xr-x 0/0") {
				t.Error(list)
			}
			if architecture != runtime.GOARCH {
				continue
			}
			if said := run(t, to, filepath.Join(to, program), "-version"); !strings.HasPrefix(said, program+" v0.987.0 go") {
				t.Errorf("%s -version: %s", program, said)
			}
		}
	}
	kit := run(t, dir, "git", "grep", "-h", "image: ghcr.io/sluice-go/", "v0.987.0", "--", "programs")
	if n := strings.Count(kit, "/sluice-gateway:v0.987.0\n"); n != 3 || n != strings.Count(kit, "\n") {
		t.Errorf("the kit has other images:\n%s", kit)
	}
}

// checkSame: the same commits give the same files, but for the SBOM of the library, which has the time.
func checkSame(t *testing.T, dir string) {
	t.Helper()
	again := clone(t, "\n- A new thing.\n")
	run(t, again, "sh", "internal/release/release.sh", "v0.987.0")
	sums := func(dir string) string {
		return run(t, dir, "grep", "-v", "sluice-v0.987.0.cdx.json", "dist/SHA256SUMS")
	}
	if a, b := sums(dir), sums(again); a != b || strings.Count(a, "image.tar\n") != 2 {
		t.Errorf("%s\nand then\n%s", a, b)
	}
}
