package main

import (
	"context"
	"sync"
	"time"
)

// hello is the first message to a page.
type hello struct {
	Algorithms []algorithm    `json:"algorithms"`
	Loads      []load         `json:"loads"`
	Strategies []contender    `json:"strategies"`
	Bounds     map[string]int `json:"bounds"`
	Columns    int            `json:"columns"`
	Moments    int            `json:"moments"`
	Work       float64        `json:"work"` // of the overload, milliseconds
	Capacity   int            `json:"capacity"`
	SLO        int            `json:"slo"` // milliseconds
}

func (p *playground) hello() hello {
	return hello{
		Algorithms: algorithms, Loads: loads, Strategies: strategies,
		Bounds:  map[string]int{"rate": mostRate, "users": mostUsers, "limit": mostLimit, "burst": mostBurst},
		Columns: columns, Moments: moments,
		Work: float64(p.overload.Work) / float64(time.Millisecond), Capacity: p.overload.Capacity, SLO: int(slo / time.Millisecond),
	}
}

// frame is the news since the last one.
type frame struct {
	Settings settings `json:"settings"`
	Offered  []int    `json:"offered"` // requests in each new column
	Lanes    []look   `json:"lanes"`
	Order    order    `json:"order"`
	Why      string   `json:"why"` // state of the strategy
	Moments  []moment `json:"moments"`
}

// look is the view of a lane on a page: three counts for each new column, at once,
// delayed and denied.
type look struct {
	Columns []int  `json:"columns"`
	Totals  totals `json:"totals"`
}

// position is how far a page has seen.
type position struct{ column, moment int }

func (p *playground) frame(from position) (frame, position) {
	f, to := p.race.frame(from.column)
	at := position{column: to}
	f.Moments, at.moment = p.overload.meter.since(from.moment)
	f.Order, f.Why = p.overload.say()
	return f, at
}

func (r *race) frame(from int) (f frame, to int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to = columnAt(r.now)
	f.Settings = r.settings
	offered := r.offered.between(from, to)
	for i := 0; i < len(offered); i += 3 {
		f.Offered = append(f.Offered, offered[i])
	}
	for _, l := range r.lanes {
		f.Lanes = append(f.Lanes, look{l.strip.between(from, to), l.count()})
	}
	return f, to
}

// say sends the order in force and the state of the limiter.
func (o *overload) say() (order, string) {
	why := ""
	if l := o.limiter.Load(); l != nil {
		why = l.Explain().String()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.order, why
}

// run keeps both parts going while a page is open.
func (p *playground) run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { p.race.run(ctx) })
	both.Go(func() { p.overload.run(ctx) })
	both.Wait()
}

// run lets the load end with ctx.
func (o *overload) run(ctx context.Context) {
	<-ctx.Done()
	o.rest()
}
