package main

import (
	"embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// probes are the programs that are built in a copy of the tree. They have the
// ending .txt, so that they are no part of this module.
//
//go:embed probes/*.txt
var probes embed.FS

var probeRows = []row{
	{"files from an HTTP header to the bucket's word and back", "Go files of which a function runs (by coverage) when httpmw.Limit of a TokenBucket by the address in X-Forwarded-For admits one request and denies the next", func(t *tree) (string, error) {
		files, err := t.trace("http", "")
		return fmt.Sprint(len(files)), err
	}},
	{"files from Acquire to the Redis reply and back", "Go files of which a function runs (by coverage) when a TokenBucket on Redis admits one request and denies the next, and the scripts that it sends", traceRedis},
	{"lines of composition plumbing", "lines of the files of algo of which a function runs in AcquireAll of two buckets and in Acquire and Release of their All, and in no Acquire of a bucket alone", func(t *tree) (string, error) {
		alone, err := t.trace("acquire", "")
		if err != nil {
			return "", err
		}
		together, err := t.trace("compose", "")
		together = slices.DeleteFunc(together, func(f string) bool { return slices.Contains(alone, f) || !strings.HasPrefix(f, "algo/") })
		t.note("composition", slices.Clone(together))
		for i := range together {
			together[i] = filepath.Join(t.root, together[i])
		}
		return fmt.Sprint(lines(together)), err
	}},
	{"gRPC and protobuf packages linked by httpmw and keyfunc", "go list -deps ./httpmw ./keyfunc, lines with google.golang.org", func(t *tree) (string, error) {
		out, err := command(t.root, nil, "go", "list", "-deps", "./httpmw", "./keyfunc")
		return fmt.Sprint(strings.Count(out, "google.golang.org")), err
	}},
	{"size above a bare server", "hello-world server with httpmw.Limit(TokenBucket, keyfunc.ClientIP()) against the same without, stripped (-ldflags '-s -w')", func(t *tree) (string, error) {
		var sizes []int64
		for _, name := range []string{"bare", "limited"} {
			bin, err := t.build(name, []string{"-ldflags", "-s -w", "-trimpath"})
			if err != nil {
				return "", err
			}
			info, err := os.Stat(bin)
			if err != nil {
				return "", err
			}
			sizes = append(sizes, info.Size())
		}
		return fmt.Sprintf("%.2f MB", float64(sizes[1]-sizes[0])/1e6), nil
	}},
}

// build builds a probe in the copy of the tree.
func (t *tree) build(name string, flags []string) (string, error) {
	source, err := probes.ReadFile("probes/" + name + ".txt")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(t.copy, "structureprobe", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), source, 0o644); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "probe")
	args := append(append([]string{"build", "-o", bin}, flags...), "./structureprobe/"+name)
	_, err = command(t.copy, nil, "go", args...)
	return bin, err
}

var executed = regexp.MustCompile(`(?m)^` + module + `/(\S+\.go):\S+ \d+ [1-9]\d*$`)

// trace runs a probe and returns the files of the module of which a function
// ran after the probe cleared the counters.
func (t *tree) trace(name, arg string) (files []string, err error) {
	bin, err := t.build(name, []string{"-cover", "-covermode=atomic", "-coverpkg=" + module + "/..."})
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(t.copy, "cover")
	if err != nil {
		return nil, err
	}
	if _, err := command(t.copy, []string{"GOCOVERDIR=" + data}, bin, arg); err != nil {
		return nil, err
	}
	profile := filepath.Join(data, "profile")
	if _, err := command(t.copy, nil, "go", "tool", "covdata", "textfmt", "-i", data, "-o", profile); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(profile)
	for _, m := range executed.FindAllStringSubmatch(string(text), -1) {
		if f := m[1]; !strings.HasPrefix(f, "structureprobe/") && !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	t.note("trace "+name, slices.Clone(files))
	return files, err
}

// traceRedis traces a decision on a redis-server, and counts the scripts of the
// tree whose text the server has received.
func traceRedis(t *tree) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	server := exec.Command("redis-server", "--port", fmt.Sprint(addr.Port), "--bind", "127.0.0.1", "--save", "", "--dir", t.copy)
	if err := server.Start(); err != nil {
		return "", err
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	time.Sleep(time.Second)
	files, err := t.trace("redis", addr.String())
	if err != nil {
		return "", err
	}
	sent, err := os.ReadFile(filepath.Join(t.copy, "scripts"))
	if err != nil {
		return "", err
	}
	scripts, err := filepath.Glob(filepath.Join(t.root, "distributed/*.lua"))
	n := 0
	for _, file := range scripts {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(sent), strings.TrimSpace(string(text))) {
			n++
		}
	}
	return fmt.Sprintf("%d Go + %d Lua", len(files), n), err
}
