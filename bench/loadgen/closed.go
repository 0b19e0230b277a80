package loadgen

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// lastAnswer is how long after its end Closed waits for answers.
const lastAnswer = 10 * time.Second

// Closed keeps n requests on their way for d and returns how many answers came
// with status 200, and how many with another. It measures the capacity of a server;
// it cannot overload it. It fails if a connection breaks, or if an answer takes
// 10 s longer than d.
func Closed(url string, n int, d time.Duration) (ok, other int64, err error) {
	g, err := newGenerator(Config{URL: url, MaxOpen: n})
	if err != nil {
		return 0, 0, err
	}
	l := loop{generator: g, end: time.Now().Add(d)}
	failed := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for failed[i] == nil && time.Now().Before(l.end) {
				failed[i] = l.connection()
			}
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return 0, 0, fmt.Errorf("loadgen: a closed loop: %w", err)
	}
	return l.good.Load(), l.bad.Load(), nil
}

type loop struct {
	*generator
	end       time.Time
	good, bad atomic.Int64
}

// connection sends one request after the other until the end, or until the
// server ends the connection after an answer.
func (l *loop) connection() error {
	deadline := l.end.Add(lastAnswer)
	c, err := net.DialTimeout("tcp", l.host, time.Until(deadline))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	r := reader{conn: c}
	for last := false; !last && time.Now().Before(l.end); {
		if _, err := c.Write(l.request); err != nil {
			return err
		}
		var status int
		if status, last, err = r.answer(); err != nil {
			return err
		}
		if status == http.StatusOK {
			l.good.Add(1)
		} else {
			l.bad.Add(1)
		}
	}
	return nil
}
