package loadgen

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Closed keeps n requests on their way for d and returns how many answers came
// with status 200, and how many with another. It measures what a server can do;
// it cannot overload it.
func Closed(url string, n int, d time.Duration) (ok, other int64, err error) {
	g, err := newGenerator(Config{URL: url, MaxOpen: n})
	if err != nil {
		return 0, 0, err
	}
	var good, bad atomic.Int64
	end := time.Now().Add(d)
	var all sync.WaitGroup
	for range n {
		c := g.dial()
		if c == nil {
			return 0, 0, errNoConn
		}
		all.Go(func() {
			defer c.Close()
			r := reader{conn: c.Conn}
			for time.Now().Before(end) {
				if _, err := c.Write(g.request); err != nil {
					return
				}
				status, last, err := r.answer()
				switch {
				case err != nil:
					return
				case status == http.StatusOK:
					good.Add(1)
				default:
					bad.Add(1)
				}
				if last {
					return
				}
			}
		})
	}
	all.Wait()
	return good.Load(), bad.Load(), nil
}
