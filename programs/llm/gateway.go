package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/meter"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/client"
	"github.com/sluice-go/sluice/httpmw/metered"
	"github.com/sluice-go/sluice/keyfunc"
)

// gateway limits the use of a language model: requests, tokens, money and streams
// in flight, in one decision, by the plan of the user.
type gateway struct {
	*config
	upstream  string
	client    *http.Client
	estimator *meter.Estimator
}

// block is how many tokens a stream reserves at a time.
const block = 100

func newGateway(c *config, upstream string, limits map[string]limits, observe func(telemetry.Event)) (http.Handler, error) {
	estimator, err := meter.NewEstimator(0.3, 200, 100_000)
	if err != nil {
		return nil, err
	}
	g := &gateway{c, upstream, &http.Client{
		// The upstream may have limits of its own.
		Transport: client.Transport(nil, algo.Unlimited(), keyfunc.Global(), client.WithServerWait(client.QuotaWait)),
	}, estimator}
	user := keyfunc.Context(func(ctx context.Context) (string, bool) { return requestOf(ctx).Name, true })
	plans := map[string][]httpmw.Policy{}
	for plan, l := range limits {
		plans[plan] = []httpmw.Policy{
			{Name: plan + "-requests", Limiter: l.requests, Key: user},
			{Name: plan + "-tokens", Limiter: l.tokens, Key: user, Cost: func(r *http.Request) int64 { q := requestOf(r.Context()); return q.prompt + q.estimate }},
			{Name: plan + "-money", Limiter: l.money, Key: user, Cost: func(r *http.Request) int64 { q := requestOf(r.Context()); return g.price(q.prompt, q.estimate) }},
			{Name: plan + "-streams", Limiter: l.streams, Key: user},
		}
	}
	plan := keyfunc.Context(func(ctx context.Context) (string, bool) { return requestOf(ctx).Plan, true })
	limit := httpmw.NewPlans(plan, plans, httpmw.WithLeaseInContext(), httpmw.WithObserver(observe)).Limit
	return g.identify(limit(http.HandlerFunc(g.complete))), nil
}

// complete asks the upstream, and charges the tokens of the answer while it is sent.
func (g *gateway) complete(w http.ResponseWriter, r *http.Request) {
	ctx, q, u := r.Context(), requestOf(r.Context()), usage{}
	m := meter.From(ctx, q.Plan+"-tokens", block)
	out := metered.New(ctx, w, metered.Metering{Meter: m, Units: u.count})
	defer out.Close()
	answer, err := g.ask(ctx, q)
	if err != nil || answer.StatusCode != http.StatusOK {
		g.settle(ctx, q, m, &usage{reported: true}) // nothing was used
		if err == nil {
			answer.Body.Close()
		}
		http.Error(w, "the model did not answer", http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	m.Use(q.prompt)
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	if q.stream {
		_, err = io.Copy(flushing{out}, answer.Body)
	} else if whole, readErr := io.ReadAll(io.LimitReader(answer.Body, mostAnswer)); readErr == nil {
		_, err = out.Write(whole)
	}
	var denied *metered.Denied
	if u.cut = errors.As(err, &denied); u.cut && q.stream {
		io.WriteString(w, "data: {\"error\":{\"type\":\"tokens\",\"message\":\"the tokens of your plan are spent\"}}\n\ndata: [DONE]\n\n")
	}
	g.settle(ctx, q, m, &u)
}

// settle charges the usage that the upstream has reported, or else the count.
func (g *gateway) settle(ctx context.Context, q *request, meter *meter.Meter, u *usage) {
	prompt, completion := q.prompt, max(meter.Used()-q.prompt, 0)
	if u.valid() {
		prompt, completion = u.prompt, u.completion
	}
	meter.Settle(prompt + completion)
	algo.LeaseFrom(ctx, q.Plan+"-money").Settle(g.price(prompt, completion))
	if completion > 0 {
		g.estimator.Learn(q.model, q.Name, q.most, completion)
	}
}

// ask sends the request on.
func (g *gateway) ask(ctx context.Context, q *request) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(g.upstream, "/")+"/v1/chat/completions", bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	return g.client.Do(r)
}

// flushing sends each event at once.
type flushing struct{ *metered.Writer }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.Flush()
	return n, err
}
