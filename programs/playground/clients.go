package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	patience    = time.Second            // then a client gives up
	slo         = 250 * time.Millisecond // an answer that comes later is late
	mostClients = 400                    // requests that are waited for at the same time
	reportEvery = 250 * time.Millisecond
	lastReport  = 2 * time.Second // how long the clients may take to end
)

// report is one line of the output of the clients.
type report struct {
	Answers [answers]int    `json:"answers"`
	Served  []time.Duration `json:"served"` // sorted
	Waiting int64           `json:"waiting"`
}

// runClients starts this program as the clients of url and hands their reports
// to see. They end with ctx, and if this process dies.
func runClients(ctx context.Context, url string, rate int, see func(report)) (ended chan struct{}, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, "-clients", url, "-rate", strconv.Itoa(rate))
	hangUp, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.Cancel = hangUp.Close
	c.WaitDelay = lastReport
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		for lines := json.NewDecoder(out); ; {
			var r report
			if lines.Decode(&r) != nil {
				break
			}
			see(r)
		}
		c.Wait() // how they end does not matter
	}()
	return ended, nil
}

// beClients is the other side: it reports until in is closed.
func beClients(ctx context.Context, in io.Reader, out io.Writer, url string, rate int) error {
	if rate < 1 || rate > mostArrivals {
		return errors.New("the rate is out of range")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		io.Copy(io.Discard, in)
		cancel()
	}()
	c := &clients{url: url, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: mostClients, DisableCompression: true,
	}}}
	defer c.client.CloseIdleConnections()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { c.send(ctx, float64(rate)) })
	for lines := json.NewEncoder(out); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reportEvery):
		}
		if err := lines.Encode(c.take()); err != nil {
			return err
		}
	}
}

// clients sends requests whether earlier ones are answered or not.
type clients struct {
	url    string
	client *http.Client

	mu     sync.Mutex
	report report
}

func (c *clients) take() report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	c.report = report{Waiting: r.Waiting}
	slices.Sort(r.Served)
	return r
}

// send sends rate requests a second at random instants until ctx ends, and
// waits for all of them.
func (c *clients) send(ctx context.Context, rate float64) {
	var group sync.WaitGroup
	defer group.Wait()
	for due := time.Now(); ; {
		due = due.Add(time.Duration(rand.ExpFloat64() / rate * float64(time.Second)))
		if time.Since(due) > patience {
			due = time.Now() // the clients themselves were starved
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		if c.begin() {
			group.Go(func() {
				a := c.ask(ctx, due)
				c.end(a, time.Since(due))
			})
		}
	}
}

// begin counts a client in. If too many wait already, this one gives up.
func (c *clients) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.report.Waiting >= mostClients {
		c.report.Answers[gaveUp]++
		return false
	}
	c.report.Waiting++
	return true
}

func (c *clients) end(a answer, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Waiting--
	c.report.Answers[a]++
	if a == good || a == late {
		c.report.Served = append(c.report.Served, took)
	}
}

// ask makes one request that was due at an instant, from which it counts.
func (c *clients) ask(ctx context.Context, due time.Time) answer {
	ctx, cancel := context.WithDeadline(ctx, due.Add(patience))
	defer cancel()
	response, err := stream(ctx, c.client, c.url)
	if err != nil {
		return gaveUp
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	switch {
	case err != nil:
		return gaveUp
	case response.StatusCode != http.StatusOK:
		return rejected
	case time.Since(due) > slo:
		return late
	}
	return good
}
