package distributed_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/keyfunc"
)

// All instances call a partner's API at one learned rate. The transport passes the answers on;
// here one is passed by hand.
func ExampleStore_Learned() {
	store, stop := exampleStore()
	defer stop()
	partner, err := store.Learned("partner", algo.PerSecond(10))
	if err != nil {
		panic(err)
	}
	_ = &http.Client{Timeout: time.Minute, Transport: client.Transport(nil, partner, keyfunc.Global())}

	partner.Answered("", learn.Answer{Sent: time.Now(), Denied: true, Wait: time.Minute})
	lease, err := partner.Acquire(ctx, "", 1)
	fmt.Println(lease.Reason, lease.RetryAfter > 55*time.Second, err)
	fmt.Println(partner.Stats("").Rate < 10)
	// Output:
	// quota true <nil>
	// true
}
