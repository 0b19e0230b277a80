package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
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
// are no part of its load. Its log is complete once it has ended.
func spawn(t *testing.T, file string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := newProcess(t, "timeouts: {unready: 0s}\n"+file)
	child := exec.Command(self, "-config", p.path)
	child.Env = append(os.Environ(), asCommand+"=1")
	child.Stderr = p.log
	require.NoError(t, child.Start())
	p.stop = func() { _ = child.Process.Signal(os.Interrupt) }
	go func() {
		defer close(p.ended)
		_ = child.Wait()
	}()
	p.await()
	return p
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
	unprotected := spawn(t, "overload: off\n"+routes).front
	protected := spawn(t, routes).front
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
