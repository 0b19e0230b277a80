package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// probeRows come from the programs in probes. They have the ending .txt, so that they are no
// part of this module: each is built in a copy of the tree.
var probeRows = []row{
	{"Go files of which a function runs (by coverage) when httpmw.Limit of a TokenBucket by the address in X-Forwarded-For admits one request and denies the next", func(t *tree) (any, []string) {
		files := t.trace("http")
		return len(files), files
	}},
	{"the same when a TokenBucket on Redis admits one request and denies the next, and the scripts that it sends", traceRedis},
	{"lines of the files of algo of which a function runs in AcquireAll of two buckets and in Acquire and Release of their All, and in no Acquire of a bucket alone", func(t *tree) (any, []string) {
		alone := t.trace("acquire")
		files := slices.DeleteFunc(t.trace("compose"), func(f string) bool { return slices.Contains(alone, f) || !strings.HasPrefix(f, "algo/") })
		n := 0
		for _, f := range files {
			n += lines(filepath.Join(t.root, f))
		}
		return n, files
	}},
	{"hello-world server with httpmw.Limit(TokenBucket, keyfunc.ClientIP()) above the same without, stripped (-ldflags '-s -w')", func(t *tree) (any, []string) {
		size := func(name string) int64 {
			return algo.Must(os.Stat(t.build(name, "-ldflags", "-s -w", "-trimpath"))).Size()
		}
		return fmt.Sprintf("%.2f MB", float64(size("limited")-size("bare"))/1e6), nil
	}},
}

// build builds a probe in the copy of the tree.
func (t *tree) build(name string, flags ...string) (bin string) {
	dir := filepath.Join(t.copy, "structureprobe", name)
	algo.Must(0, os.MkdirAll(dir, 0o755))
	source := algo.Must(os.ReadFile("structure/probes/" + name + ".txt"))
	algo.Must(0, os.WriteFile(filepath.Join(dir, "main.go"), source, 0o644))
	bin = filepath.Join(dir, "probe")
	command(t.copy, nil, "go", slices.Concat([]string{"build", "-o", bin}, flags, []string{"./structureprobe/" + name})...)
	return bin
}

var executed = regexp.MustCompile(`(?m)^` + module + `/(\S+\.go):\S+ \d+ [1-9]\d*$`)

// trace runs a probe and returns the files of the module of which a function ran after the probe
// cleared the counters.
func (t *tree) trace(name string, args ...string) (files []string) {
	bin := t.build(name, "-cover", "-covermode=atomic", "-coverpkg="+module+"/...")
	data := algo.Must(os.MkdirTemp(t.copy, "cover"))
	command(t.copy, []string{"GOCOVERDIR=" + data}, bin, args...)
	profile := command(t.root, nil, "go", "tool", "covdata", "textfmt", "-i", data, "-o", "/dev/stdout")
	for _, m := range executed.FindAllStringSubmatch(profile, -1) {
		if f := m[1]; !strings.HasPrefix(f, "structureprobe/") && !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	return files
}

// traceRedis traces a decision on a redis-server, and counts the scripts of the tree whose text
// the server has received.
func traceRedis(t *tree) (any, []string) {
	l := algo.Must(net.Listen("tcp", "127.0.0.1:0"))
	addr := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	server := exec.Command("redis-server", "--port", fmt.Sprint(addr.Port), "--bind", "127.0.0.1", "--save", "", "--dir", t.copy)
	algo.Must(0, server.Start())
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	time.Sleep(time.Second)
	files, n := t.trace("redis", addr.String()), 0
	sent := string(algo.Must(os.ReadFile(filepath.Join(t.copy, "scripts"))))
	for _, file := range algo.Must(filepath.Glob(filepath.Join(t.root, "distributed/*.lua"))) {
		if strings.Contains(sent, strings.TrimSpace(string(algo.Must(os.ReadFile(file))))) {
			n++
		}
	}
	return fmt.Sprintf("%d Go + %d Lua", len(files), n), files
}
