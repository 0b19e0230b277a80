//go:build unix

package main

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
)

// TestDockerfiles runs the steps of the Dockerfiles without docker: in the everyday run up to
// the downloads, with which a folder that is not copied shows; in a long one the build too,
// whose binary has to be static and to run.
//
//	SLUICE_LONG=1 go test -count 1 -timeout 20m -run TestDockerfiles .
func TestDockerfiles(t *testing.T) {
	for _, name := range []string{"gateway", "rls"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../" + name + "/Dockerfile")
			require.NoError(t, err)
			root := t.TempDir() // of the image that builds
			source := filepath.Join(root, "src")
			require.NoError(t, os.Mkdir(source, 0o700))
			stage, copied := 0, map[string]bool{}
			for line := range strings.Lines(string(text)) {
				step, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
				words := strings.Fields(rest)
				switch {
				case step == "FROM":
					stage++
					if stage == 1 {
						require.Equal(t, "golang:"+goVersion(t), words[0], "the version of go.mod")
					} else {
						require.Equal(t, "scratch", words[0])
					}
				case step == "WORKDIR":
					require.Equal(t, "/src", rest)
				case step == "COPY" && stage == 1 && rest == ". .":
					if !cases.Long() {
						return
					}
					sh(t, "../..", "git ls-files -co --exclude-standard -z | xargs -0 cp --parents -t "+source)
				case step == "COPY" && stage == 1:
					to := filepath.Join(source, words[len(words)-1])
					require.NoError(t, os.MkdirAll(to, 0o700))
					for _, from := range words[:len(words)-1] {
						sh(t, "../..", "cp "+from+" "+to+"/")
					}
				case step == "RUN":
					sh(t, source, strings.ReplaceAll(rest, " -o /", " -o "+root+"/"))
				case step == "COPY":
					copied[words[len(words)-1]] = true
				case step == "HEALTHCHECK", step == "ENTRYPOINT":
					var command []string
					_, list, _ := strings.Cut(rest, "[")
					require.NoError(t, json.Unmarshal([]byte("["+list), &command))
					require.Equal(t, "/"+name, command[0])
					require.True(t, copied[command[0]], "%s is in the image", command[0])
				}
			}
			binary := filepath.Join(root, name)
			file, err := elf.Open(binary)
			require.NoError(t, err)
			defer file.Close()
			for _, p := range file.Progs {
				require.NotEqual(t, elf.PT_INTERP, p.Type, "a static binary needs no loader")
			}
			said, err := exec.Command(binary, "-version").Output()
			require.NoError(t, err)
			require.Contains(t, string(said), name)
		})
	}
}

// goVersion is the version that go.mod asks for, without its patch.
func goVersion(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(text))[1]
}

func sh(t *testing.T, folder, command string) {
	t.Helper()
	c := exec.Command("sh", "-ec", command)
	c.Dir = folder
	said, err := c.CombinedOutput()
	require.NoError(t, err, "%s\n%s", command, said)
}

// The images have no database of time zones, so the programs bring one.
func TestTimeZonesAreEmbedded(t *testing.T) {
	for _, program := range []string{".", "../rls"} {
		c := exec.Command("go", "list", "-deps", ".")
		c.Dir = program
		said, err := c.Output()
		require.NoError(t, err)
		require.Contains(t, strings.Fields(string(said)), "time/tzdata", program)
	}
}
