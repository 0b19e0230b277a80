//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/cases"
	"github.com/sluice-go/sluice/internal/redistest"
)

// TestNoBrokenAnswers: while the file changes, Redis is killed and comes back, and
// instances are replaced by new ones, every request is either answered by the upstream,
// whole, or denied with 429 and Retry-After. Seconds in an everyday run, ten minutes in a
// long one.
func TestNoBrokenAnswers(t *testing.T) {
	last := 6 * time.Second
	if cases.Long() {
		last = 10 * time.Minute
	}
	redis := redistest.Start(t)
	u := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(50 * time.Millisecond)
		}
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	file := func(burst int) string {
		return fmt.Sprintf("store: redis\nredis: {addresses: ['%s']}\ntimeouts: {unready: 100ms}\nroutes: [{pattern: /, upstream: '%s', limits: [{name: a, key: ip, limit: 200/s burst %d}]}]\n", redis.Addr(), u, burst)
	}
	end := time.Now().Add(last)
	var serving atomic.Pointer[process] // the instance that a load balancer would pick
	serving.Store(start(t, file(50)))

	var faults sync.WaitGroup
	every := func(d time.Duration, f func(n int)) {
		faults.Go(func() {
			for n := 1; time.Until(end) > d; n++ {
				time.Sleep(d)
				f(n)
			}
		})
	}
	var replacing sync.Mutex
	every(300*time.Millisecond, func(n int) {
		replacing.Lock()
		defer replacing.Unlock()
		serving.Load().write(file(50 + n%50))
	})
	every(1100*time.Millisecond, func(int) {
		redis.Kill()
		time.Sleep(400 * time.Millisecond)
		redis.Restart()
	})
	every(1700*time.Millisecond, func(int) {
		replacing.Lock()
		old := serving.Swap(start(t, file(50)))
		replacing.Unlock()
		old.stop()
		<-old.ended
	})

	var passed, denied, broken atomic.Int64
	var first sync.Once
	var clients sync.WaitGroup
	payload := bytes.Repeat([]byte("0123456789"), 1000)
	for c := range 10 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
			defer client.CloseIdleConnections()
			path := "/"
			if c%2 == 0 {
				path = "/slow"
			}
			for time.Now().Before(end) {
				switch wrong := answer(client, serving.Load().front+path, payload); wrong {
				case "":
					passed.Add(1)
				case "429":
					denied.Add(1)
				default:
					broken.Add(1)
					first.Do(func() { t.Errorf("the first broken answer: %s", wrong) })
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	clients.Wait()
	faults.Wait()
	t.Logf("%v: %d passed, %d denied, %d broken", last, passed.Load(), denied.Load(), broken.Load())
	require.Positive(t, passed.Load())
	require.Positive(t, denied.Load())
	require.Zero(t, broken.Load())
}

// answer posts a body that the upstream sends back: "", "429", or what is wrong.
func answer(client *http.Client, url string, payload []byte) string {
	resp, err := client.Post(url, "text/plain", bytes.NewReader(payload))
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err.Error()
	case resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "":
		return "429"
	case resp.StatusCode != 200 || !bytes.Equal(body, payload):
		return fmt.Sprint(resp.Status, " ", strings.TrimSpace(string(body[:min(len(body), 80)])))
	}
	return ""
}

// TestBodiesPassWhole: an upstream that answers as soon as it has the body is not cut off.
// Its client looks once more for the end of the body, when the server has closed that.
func TestBodiesPassWhole(t *testing.T) {
	u := upstream(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	})
	front, _ := spawn(t, "overload: off\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: ip, limit: 1000000/s}]}]\n")
	payload := bytes.Repeat([]byte("0123456789"), 1000)
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			client := &http.Client{Transport: &http.Transport{}, Timeout: 20 * time.Second}
			defer client.CloseIdleConnections()
			for range cases.Count(400, 20000) {
				if wrong := answer(client, front, payload); wrong != "" {
					t.Error(wrong)
					return
				}
			}
		})
	}
	clients.Wait()
}
