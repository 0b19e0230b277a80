package guides_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
)

// A partner's documented limit, without a burst.
func Example_partner() {
	server := httptest.NewServer(ok)
	defer server.Close()

	perSecond := algo.Must(algo.NewPacer(algo.PerSecond(46)))
	c := &http.Client{
		Timeout:   time.Minute,
		Transport: client.Transport(nil, perSecond, keyfunc.Global()),
	}

	start := time.Now()
	for range 10 {
		if resp, err := c.Get(server.URL); err == nil {
			_ = resp.Body.Close()
		}
	}
	fmt.Println(time.Since(start) > 9*time.Second/46)
	// Output: true
}

// A partner's unknown limit.
func Example_learnedPartner() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()

	partner := learn.New(algo.PerSecond(10)) // a guess
	c := &http.Client{
		Timeout:   time.Minute,
		Transport: client.Transport(nil, partner, keyfunc.Global()),
	}

	resp, err := c.Get(server.URL)
	if err == nil {
		_ = resp.Body.Close()
	}
	known := partner.Stats()
	fmt.Println(known.Rate < 10, known.Wait > 55*time.Second, known.Denied, known.Taught.Wait)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	_, err = c.Do(req)
	fmt.Println(err != nil) // at once: the wait does not fit
	// Output:
	// true true 1 1m0s
	// true
}

// One learned limit for a fleet.
func Example_learnedPartnerOfAFleet() {
	redis, stop := redisClient()
	defer stop()
	store := algo.Must(distributed.New(redis, patient))
	defer store.Close()

	partner, err := store.Learned("partner", algo.PerSecond(10))
	if err != nil {
		panic(err)
	}
	partner.Answered("", learn.Answer{Sent: time.Now(), Denied: true, Wait: time.Minute})
	fmt.Println(partner.Stats("").Rate < 10)
	// Output: true
}
