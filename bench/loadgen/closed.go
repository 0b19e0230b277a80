package loadgen

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// lastAnswer is how long after its end Closed waits for answers.
const lastAnswer = 30 * time.Second

// Closed keeps n requests on their way for d and returns the answers. It measures the capacity of
// a server; it cannot overload it. It fails if a connection breaks, or if an answer takes
// 30 s longer than d.
func Closed(url string, n int, d time.Duration) ([]Answer, error) {
	g, err := newGenerator(Config{URL: url, MaxOpen: n})
	if err != nil {
		return nil, err
	}
	g.start = time.Now()
	return Loop(n, d, func(end time.Time, took func(time.Time, int16)) error { return g.connection(end, took) })
}

// Loop runs n clients for d, again and again until the end, and returns all that they took.
func Loop(n int, d time.Duration, client func(end time.Time, took func(began time.Time, status int16)) error) ([]Answer, error) {
	start := time.Now()
	end := start.Add(d)
	answers, failed := make([][]Answer, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for failed[i] == nil && time.Now().Before(end) {
				failed[i] = client(end, func(began time.Time, status int16) {
					answers[i] = append(answers[i], Answer{began.Sub(start), time.Since(began), status})
				})
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, fmt.Errorf("loadgen: a closed loop: %w", err)
	}
	return slices.Concat(answers...), nil
}

// connection sends one request after the other until the end, or until the
// server ends the connection after an answer.
func (g *generator) connection(end time.Time, took func(time.Time, int16)) error {
	deadline := end.Add(lastAnswer)
	c, err := net.DialTimeout("tcp", g.host, time.Until(deadline))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	r := reader{conn: c}
	for last := false; !last; {
		began := time.Now()
		if !began.Before(end) {
			break
		}
		if _, err := c.Write(g.request); err != nil {
			return err
		}
		var status int
		if status, last, err = r.answer(); err != nil {
			return err
		}
		took(began, int16(status))
	}
	return nil
}
