package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/bench/loadgen"
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

// recovered is the time after the trigger from which on every second was good; afterIt if none.
func recovered(all []loadgen.Answer) time.Duration {
	const end = beforeIt + triggered
	for d := afterIt - time.Second; d >= 0; d -= time.Second / 10 {
		if share(between(all, end+d, end+d+time.Second), served) < .95 {
			return d + time.Second
		}
	}
	return 0
}

func metastable(r rig) {
	heads(fmt.Sprintf("Retries after a trigger\n\nThe load is %g of the capacity, %gx for %v, and %g again; the handler takes 5 ms, an answer counts within %v, clients give up after %v and try up to %d times, with a random pause of up to 100, 200 and 400 ms between. "+
		"Requests with an answer in time, of the offered; late is the part of the served requests whose answer came too late.",
		offered, trigger, triggered, offered, late, hurry, attempts), "limiter", "before", "2s after the trigger and later", "recovered after", "late")
	r.work, r.procs, r.patience = "5ms", 1, hurry
	rate := r.full()
	for _, l := range []string{"none", "default", "aegis", "failsafe", "gozero"} {
		r.cells(l, []string{l}, func(r *rig, l string) { r.limiter = l }, func(r rig) (string, error) {
			all := loadgen.Paced(loadgen.Config{Seed: *seed, Phases: []loadgen.Phase{
				phase(offered*rate, beforeIt), phase(trigger*rate, triggered), phase(offered*rate, afterIt),
			}}, r.persist)
			n, err := r.served()
			return fmt.Sprintf("%.2f | %.2f | %v | %.1f %%", share(between(all, time.Second, beforeIt), served),
				share(after(all, beforeIt+triggered+2*time.Second), served), recovered(all), 100*max(0, 1-float64(count(all, served))/float64(n))), err
		})
	}
}

// persist sends a request until it gets an answer in time, or has tried often enough.
func (r rig) persist() (status int16) {
	for i := range attempts {
		if i > 0 {
			time.Sleep(time.Duration(rand.Int64N(int64(100 * time.Millisecond << (i - 1)))))
		}
		began := time.Now()
		if r.once() == http.StatusOK && time.Since(began) <= late {
			return http.StatusOK
		}
	}
	return loadgen.TimedOut
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
