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

	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestNoBrokenAnswers: while the file changes, Redis is killed and comes back, and
// instances are replaced by new ones, every request is either answered by the upstream,
// whole, or denied with 429 and Retry-After. The faults are counted by what they did: reloads
// that the instances report, decisions that were made without Redis, instances that ended
// in order. Seconds in an everyday run, ten minutes in a long one.
//
//	SLUICE_LONG=1 go test -count 1 -timeout 20m -v -run TestNoBrokenAnswers .
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
		return fmt.Sprintf("store: redis\nredis: {addresses: ['%s']}\ntimeouts: {unready: 500ms}\nroutes: [{pattern: /, upstream: '%s', limits: [{name: a, key: ip, limit: 200/s burst %d}]}]\n", redis.Addr(), u, burst)
	}
	end := time.Now().Add(last)
	var serving atomic.Pointer[process] // the instance that a load balancer would pick
	serving.Store(start(t, file(50)))

	var faults sync.WaitGroup
	var reloads, kills, outages, drains atomic.Int64
	retire := func(p *process) {
		reloads.Add(int64(p.config().Reloads))
		p.stop()
		<-p.ended
		if said := p.log.String(); p.exit == 0 && !strings.Contains(said, "drain timed out") {
			drains.Add(1)
			outages.Add(int64(strings.Count(said, "code=telemetry.fallback")))
		} else {
			t.Errorf("an instance did not end in order: status %d\n%s", p.exit, said)
		}
	}
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
		kills.Add(1)
	})
	every(1700*time.Millisecond, func(int) {
		replacing.Lock()
		old := serving.Swap(start(t, file(50)))
		replacing.Unlock()
		retire(old)
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
	retire(serving.Load())
	t.Logf("%v: %d passed, %d denied, %d broken; %d reloads, Redis killed %d times (%d lines of decisions without it), %d drains",
		last, passed.Load(), denied.Load(), broken.Load(), reloads.Load(), kills.Load(), outages.Load(), drains.Load())
	for name, n := range map[string]*atomic.Int64{"reloads": &reloads, "kills": &kills, "decisions without Redis": &outages} {
		require.Positive(t, n.Load(), name)
	}
	require.GreaterOrEqual(t, drains.Load(), int64(2), "the last instance is one")
	require.Positive(t, passed.Load())
	require.Positive(t, denied.Load())
	require.Zero(t, broken.Load())
}

// answer posts a body that the upstream sends back. It returns "", "429", or the
// fault.
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
	front := spawn(t, "overload: off\nroutes: [{pattern: /, upstream: '"+u+"', limits: [{name: a, key: ip, limit: 1000000/s}]}]\n").front
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
