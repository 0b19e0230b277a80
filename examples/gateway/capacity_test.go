package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asCommand makes the test binary the command, so that tests can run it as a
// process of its own.
const asCommand = "GATEWAY_TEST_AS_COMMAND"

// spawn runs the command in a process of its own, so that clients in this one
// are no part of its load. It returns the address for clients and what the
// process wrote, complete once it has ended.
func spawn(t *testing.T, file string) (front string, ended func() []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	require.NoError(t, os.WriteFile(path, []byte(addresses+"timeouts: {unready: 0s}\n"+file), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.Command(self, "-config", path)
	child.Env = append(os.Environ(), asCommand+"=1")
	stderr, err := child.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	serving, lines := make(chan string, 1), make(chan []string, 1)
	go func() {
		var all []string
		at := regexp.MustCompile(`msg=serving listen=(\S+)`)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			all = append(all, s.Text())
			if m := at.FindStringSubmatch(s.Text()); m != nil {
				serving <- "http://" + m[1]
			}
		}
		lines <- all
	}()
	end := sync.OnceValue(func() []string {
		_ = child.Process.Signal(os.Interrupt)
		all := <-lines
		_ = child.Wait()
		return all
	})
	t.Cleanup(func() { end() })
	select {
	case front = <-serving:
	case <-time.After(10 * time.Second):
		require.Fail(t, "the command does not serve", "%q", end())
	}
	return front, end
}

// answers counts statuses.
type answers [600]atomic.Int64

func (a *answers) get(client *http.Client, url string) {
	resp, err := client.Get(url)
	if err != nil {
		a[0].Add(1)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	a[resp.StatusCode].Add(1)
}

// loads are closed loops and bursts of a number of connections. Each returns what it
// sent.
var loads = []struct {
	name string
	send func(connections int, get func()) (sent int)
}{
	{"closed loop", func(connections int, get func()) int {
		var clients sync.WaitGroup
		for range connections {
			clients.Go(func() {
				for range 20 {
					get()
				}
			})
		}
		clients.Wait()
		return 20 * connections
	}},
	{"bursts", func(connections int, get func()) int {
		for range 5 {
			var clients sync.WaitGroup
			for range connections {
				clients.Go(get)
			}
			clients.Wait()
			time.Sleep(200 * time.Millisecond)
		}
		return 5 * connections
	}},
}

// inTime is the share of the overload protection's target that may be spent waiting:
// what waits less is never denied.
const inTime = 175 * time.Millisecond

// Closed loops and bursts that are served in time without the overload protection are
// no overload. Both are measured in turns, because other processes may take the
// processor away, and then there is one.
func TestNoNeedlessDenials(t *testing.T) {
	u := upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	routes := "routes: [{pattern: /, upstream: '" + u + "', limits: [{name: a, key: ip, limit: 1000000/s}]}]\n"
	unprotected, _ := spawn(t, "overload: off\n"+routes)
	protected, _ := spawn(t, routes)
	for _, connections := range []int{64, 128, 256, 512} {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
		for _, load := range loads {
			t.Run(fmt.Sprintf("%s of %d", load.name, connections), func(t *testing.T) {
				measure := func(front string) (*answers, time.Duration, int) {
					var got answers
					var mu sync.Mutex
					var times []time.Duration
					sent := load.send(connections, func() {
						begin := time.Now()
						got.get(client, front)
						mu.Lock()
						defer mu.Unlock()
						times = append(times, time.Since(begin))
					})
					slices.Sort(times)
					return &got, times[len(times)*99/100], sent
				}
				_, before, _ := measure(unprotected)
				got, p99, sent := measure(protected)
				_, after, _ := measure(unprotected)
				t.Logf("%d of %d denied, p99 %v; without protection %v and %v", got[503].Load(), sent, p99, before, after)
				require.Zero(t, got[0].Load(), "requests without an answer")
				if max(before, after) <= inTime {
					require.GreaterOrEqual(t, 20*got[200].Load(), int64(19*sent), "%d of %d answers were 503", got[503].Load(), sent)
				}
			})
		}
		client.CloseIdleConnections()
	}
}
