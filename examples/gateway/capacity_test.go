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

// allServed allows for one in ten that was denied: other processes of this
// machine may take the processor away, and then there is an overload.
func (a *answers) allServed(t *testing.T, sent int) {
	t.Helper()
	require.Zero(t, a[0].Load(), "requests without an answer")
	require.GreaterOrEqual(t, 10*a[200].Load(), int64(9*sent), "%d of %d answers were 503", a[503].Load(), sent)
}

// Closed loops and bursts that the process can serve are no overload.
func TestNoNeedlessDenials(t *testing.T) {
	u := upstream(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	front, _ := spawn(t, "routes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: ip, limit: 1000000/s}]}]\n")
	for _, connections := range []int{128, 256, 512} {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
		t.Run(fmt.Sprintf("%d connections", connections), func(t *testing.T) {
			var got answers
			var clients sync.WaitGroup
			for range connections {
				clients.Go(func() {
					for range 20 {
						got.get(client, front)
					}
				})
			}
			clients.Wait()
			got.allServed(t, 20*connections)
		})
		t.Run(fmt.Sprintf("bursts of %d", connections), func(t *testing.T) {
			var got answers
			for range 5 {
				var clients sync.WaitGroup
				for range connections {
					clients.Go(func() { got.get(client, front) })
				}
				clients.Wait()
				time.Sleep(200 * time.Millisecond)
			}
			got.allServed(t, 5*connections)
		})
		client.CloseIdleConnections()
	}
}
