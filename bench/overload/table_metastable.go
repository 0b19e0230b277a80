package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// The metastable failure: a trigger that ends, and retries that do not let the server
// recover from it.
const (
	offered   = .95 // of the capacity, before and after the trigger
	trigger   = 3.0
	attempts  = 4
	hurry     = time.Second
	beforeIt  = 5 * time.Second
	triggered = 10 * time.Second
	afterIt   = 12 * time.Second
)

// tally counts requests by the tenth of a second in which their first attempt was sent.
type tally struct {
	began         time.Time
	mu            sync.Mutex
	offered, good [(beforeIt + triggered + afterIt) / (time.Second / 10)]int
	inTime        atomic.Int64 // answers
}

// share is the part of the requests in a span that got an answer in time.
func (t *tally) share(from, to time.Duration) float64 {
	offered, good := 0, 0
	for i := from / (time.Second / 10); i < to/(time.Second/10); i++ {
		offered, good = offered+t.offered[i], good+t.good[i]
	}
	return float64(good) / float64(max(offered, 1))
}

// recovered is the time after the trigger from which on every second was good; afterIt if none.
func (t *tally) recovered() time.Duration {
	end := beforeIt + triggered
	for d := afterIt - time.Second; d >= 0; d -= time.Second / 10 {
		if t.share(end+d, end+d+time.Second) < .95 {
			return d + time.Second
		}
	}
	return 0
}

func metastable(r rig) error {
	heads(fmt.Sprintf("Retries after a trigger\n\nThe load is %g of the capacity, %gx for %v, and %g again; the handler takes 5 ms, an answer counts within %v, clients give up after %v and try up to %d times, with a random pause of up to 100, 200 and 400 ms between. "+
		"Requests with an answer in time, of the offered; late is the part of the served requests whose answer came too late.",
		offered, trigger, triggered, offered, late, hurry, attempts), "limiter", "before", "2s after the trigger and later", "recovered after", "late")
	r.work, r.procs, r.patience = "5ms", 1, hurry
	rate, err := r.full()
	if err != nil {
		return err
	}
	for _, r.limiter = range []string{"none", "default", "aegis", "failsafe", "gozero"} {
		if err := r.with(func(r rig) error {
			t := r.storm(rate)
			n, err := r.served()
			if err != nil {
				return err
			}
			end := beforeIt + triggered
			fmt.Printf("| %s | %.2f | %.2f | %v | %.1f %% |\n", r.limiter, t.share(time.Second, beforeIt), t.share(end+2*time.Second, end+afterIt),
				t.recovered(), 100*max(0, 1-float64(t.inTime.Load())/float64(n)))
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// storm sends the load, and the trigger in its midst.
func (r rig) storm(rate float64) *tally {
	t := &tally{began: time.Now()}
	var all sync.WaitGroup
	for due := time.Duration(0); due < beforeIt+triggered+afterIt; {
		time.Sleep(time.Until(t.began.Add(due)))
		tenth := due / (time.Second / 10)
		all.Go(func() {
			good := r.persist(t)
			t.mu.Lock()
			defer t.mu.Unlock()
			t.offered[tenth]++
			if good {
				t.good[tenth]++
			}
		})
		times := offered
		if due >= beforeIt && due < beforeIt+triggered {
			times = trigger
		}
		due += time.Duration(rand.ExpFloat64() / (times * rate) * 1e9)
	}
	all.Wait()
	return t
}

// persist sends a request until it gets an answer in time, or has tried often enough.
func (r rig) persist(t *tally) bool {
	for i := range attempts {
		if i > 0 {
			time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond << (i - 1)))))
		}
		began := time.Now()
		if r.once() == http.StatusOK && time.Since(began) <= late {
			t.inTime.Add(1)
			return true
		}
	}
	return false
}

// served is how many requests the handler has served.
func (r rig) served() (int, error) {
	// The server may still be busy: this client has the patience that the others lack.
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(r.url() + "served")
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(text))
}
