package guides_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/metered"
	"github.com/sluice-go/sluice/keyfunc"
)

// A stream is charged in blocks while it runs.
func Example_meter() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(100)))
	ctx := context.Background()
	stream := []int64{30, 30, 30, 30} // tokens in each chunk

	m, err := meter.Start(ctx, tokens, "alice", 40, 25) // an estimate, and a block
	if err != nil || !m.Allowed {
		return
	}
	defer m.Close()
	for _, chunk := range stream {
		d, err := m.Reserve(ctx, chunk)
		if err != nil || !d.Allowed {
			break
		}
		m.Use(chunk)
	}

	fmt.Println(m.Used())
	// Output: 90
}

// A stream over HTTP ends where the limit is spent.
func Example_meteredResponse() {
	tokens := algo.Must(algo.NewTokenBucket(algo.PerHour(12)))
	tokensIn := func(event []byte) int64 { return int64(len(bytes.Fields(event))) - 1 }
	upstream := strings.NewReader("data: a b c\n\ndata: d e f\n\ndata: g h i\n\ndata: j k l\n\ndata: m n\n\ndata: o\n\n")

	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		m := meter.From(r.Context(), "tokens", 100)
		out := metered.New(r.Context(), w, metered.Metering{Meter: m, Units: tokensIn})
		defer out.Close()
		if _, err := io.Copy(out, upstream); err != nil {
			fmt.Fprint(w, "event: limit\n\n") // the stream is denied, at the end of an event
			return
		}
		m.Settle(14) // what the upstream has reported, if it has
	})

	limit := httpmw.Limit(tokens, keyfunc.ClientIP(), httpmw.WithName("tokens"), httpmw.WithLeaseInContext())
	fmt.Print(strings.ReplaceAll(get(limit(answer), "/", "").Body.String(), "\n\n", "\n"))
	// Output:
	// data: a b c
	// data: d e f
	// data: g h i
	// data: j k l
	// data: m n
	// event: limit
}
