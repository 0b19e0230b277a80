// Package trial replays logs through limits: it merges the records of several logs in the order of
// arrival, and gives each track of limits its events.
package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/programs/plan/accesslog"
)

// Track is limits that share a key.
type Track struct {
	Key  func(*accesslog.Record) (string, bool) // false: the record has none
	Need string                                 // the fields of the key, for messages
	// Shared reports whether a record without the key shares the key "" with others; nil: it is left out.
	Shared func(*accesslog.Record) bool
	// Cost is 1 if it is nil. With the error [ErrNoCost] its number counts too, with another one the line is
	// unreadable.
	Cost func(*accesslog.Record) (int64, error)
	Only func(*accesslog.Record) bool // nil: all records
	backtest.Config
}

// ErrNoCost says that a record has no cost, and costs the default.
var ErrNoCost = errors.New("no cost")

// Log is a log to read.
type Log struct {
	Name string
	io.Reader
}

// Options are the bounds of a trial.
type Options struct {
	accesslog.Config
	Window  time.Duration // records that are out of order by less are sorted
	MostBad float64       // the share of lines that may be unreadable, or out of order by more
	Samples int           // unreadable lines that are kept
	Hide    bool          // no text of a line is in a message
	Lines   *atomic.Int64 // counts the lines, or nil
	Named   []Field       // each is in some line, or a name is wrong
}

// Field is a field of the log that a flag names.
type Field struct{ Name, Flag string }

// Result is what a trial has found.
type Result struct {
	Lines, Bad int64
	Samples    []string // the first unreadable lines
	Late       int64    // records that were out of order by more than the window
	// WholeSeconds reports that no time has a fraction of a second, Durations that some requests have one.
	WholeSeconds, Durations bool
	Tracks                  []TrackResult
}

// TrackResult is the result of one track.
type TrackResult struct {
	*backtest.Report
	Missing  int64 // records without the key
	Left     int64 // those of them that were left out
	Costless int64 // records that cost the default
	// Impossible counts, for each limit, the requests whose cost it can never admit.
	Impossible []int64
	Demand     Demand
}

// event is a record of a track. Times are in ns since 1970.
type event struct {
	at, took int64
	cost     int64
	key      string
	track    int
}

// batch is events in order.
type batch []event

const batchSize = 4096

// Run replays logs through tracks.
func Run(ctx context.Context, logs []Log, tracks []Track, o Options) (*Result, error) {
	replays := make([]*backtest.Replay, len(tracks))
	demands, impossible := make([]demand, len(tracks)), make([][]int64, len(tracks))
	for i, t := range tracks {
		impossible[i] = make([]int64, len(t.Limits)+len(t.InFlight))
		var err error
		if replays[i], err = backtest.New(t.Config); err != nil {
			return nil, err
		}
	}
	interrupted := ctx.Err
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sources := make([]*source, len(logs))
	var running sync.WaitGroup
	for i, l := range logs {
		s := newSource(l, tracks, o)
		sources[i] = s
		running.Go(func() { s.run(ctx) })
	}
	err := merge(ctx, sources, func(e *event) error {
		demands[e.track].add(e)
		decisions, err := replays[e.track].Add(backtest.Event{At: time.Unix(0, e.at).UTC(), Key: e.key, Cost: e.cost, Duration: time.Duration(e.took)})
		for i, d := range decisions {
			if d.Reason == algo.Never {
				impossible[e.track][i]++
			}
		}
		return err
	})
	if interrupted() != nil { // a reader may be waiting for input
		return nil, fmt.Errorf("interrupted, so there is no result: %w", interrupted())
	}
	stop()
	running.Wait()
	if err != nil {
		return nil, err
	}
	result, err := conclude(sources, tracks, o)
	if err != nil {
		return nil, err
	}
	for i := range result.Tracks {
		t := &result.Tracks[i]
		t.Report = replays[i].Report()
		t.Demand, t.Impossible = demands[i].result(), impossible[i]
	}
	return result, nil
}

// merge takes the earliest event of all sources again and again.
func merge(ctx context.Context, sources []*source, use func(*event) error) error {
	heads := make([]batch, len(sources))
	for i, s := range sources {
		heads[i] = s.next(ctx)
	}
	for {
		first := -1
		for i, h := range heads {
			if len(h) > 0 && (first < 0 || h[0].at < heads[first][0].at) {
				first = i
			}
		}
		if first < 0 {
			break
		}
		if err := use(&heads[first][0]); err != nil {
			return err
		}
		if heads[first] = heads[first][1:]; len(heads[first]) == 0 {
			heads[first] = sources[first].next(ctx)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, s := range sources {
		if s.err != nil {
			return s.err
		}
	}
	return nil
}

// next returns the next events, none at the end of the log or of ctx.
func (s *source) next(ctx context.Context) batch {
	select {
	case b := <-s.out:
		return b
	case <-ctx.Done():
		return nil
	}
}

// conclude adds up what the sources have counted, and decides whether that is enough.
func conclude(sources []*source, tracks []Track, o Options) (*Result, error) {
	r := &Result{Tracks: make([]TrackResult, len(tracks)), WholeSeconds: true}
	matched := make([]int64, len(tracks))
	unseen := slices.Clone(o.Named)
	var taken, unpriced int64
	var fields []string
	for _, s := range sources {
		r.Lines += s.lines
		r.Bad += s.bad
		r.Late += s.late
		taken += s.taken
		unpriced += s.unpriced
		unseen = slices.DeleteFunc(unseen, func(f Field) bool { return !slices.Contains(s.unseen, f) })
		r.WholeSeconds = r.WholeSeconds && !s.fractions
		r.Durations = r.Durations || s.durations
		r.Samples = append(r.Samples, s.samples[:min(len(s.samples), o.Samples-len(r.Samples))]...)
		for i := range tracks {
			r.Tracks[i].Missing += s.missing[i]
			r.Tracks[i].Left += s.left[i]
			r.Tracks[i].Costless += s.costless[i]
			matched[i] += s.matched[i]
		}
		for _, f := range s.fields {
			if !slices.Contains(fields, f) {
				fields = append(fields, f)
			}
		}
	}
	if err := r.judge(taken, unpriced, unseen, fields, o); err != nil {
		return nil, err
	}
	for i, t := range tracks {
		for _, s := range sources {
			if s.keyless(i) && o.tooMany(s.missing[i], matched[i]) {
				return nil, noKey(s, t)
			}
		}
	}
	if taken == 0 {
		return nil, fmt.Errorf("none of %d records passes the filters, or is on a route with a limit: nothing was tried", r.Lines-r.Bad)
	}
	return r, nil
}

func (o *Options) tooMany(n, of int64) bool { return float64(n) > o.MostBad*float64(of) }

// judge finds lines that are unreadable or out of order and are too many, and names of fields that no line has.
func (r *Result) judge(taken, unpriced int64, unseen []Field, fields []string, o Options) error {
	switch good := r.Lines - r.Bad; {
	case r.Lines == 0:
		return errors.New("the logs have no lines")
	case len(fields) > 0 && len(unseen) > 0:
		return fmt.Errorf("no line has %s, which %s names. The log has: %s", unseen[0].Name, unseen[0].Flag, accesslog.List(fields))
	case o.tooMany(unpriced, r.Lines):
		return fmt.Errorf("%d of %d records have no cost that can be read, more than %.3g %%: choose its field by -cost, leave the records out by -where, or raise -bad; the first are\n  %s",
			unpriced, r.Lines, 100*o.MostBad, strings.Join(r.Samples, "\n  "))
	case o.tooMany(r.Bad, r.Lines) || good == 0:
		return fmt.Errorf("%d of %d lines cannot be read, more than %.3g %%: name the format by -format, or raise -bad; the first are\n  %s",
			r.Bad, r.Lines, 100*o.MostBad, strings.Join(r.Samples, "\n  "))
	case o.tooMany(r.Late, taken):
		return fmt.Errorf("%d of %d records (%.3g %%) are out of order by more than %v, more than %.3g %%: sort the log, give -window (up to 24h), or raise -bad",
			r.Late, taken, 100*float64(r.Late)/float64(taken), o.Window, 100*o.MostBad)
	}
	return nil
}

func noKey(s *source, t Track) error {
	return fmt.Errorf("%s: no line has the field of the key %q. The log has: %s. Choose one by -key, or name the field that has it by -field %s=FIELD",
		s.log.Name, t.Need, accesslog.List(s.fields), strings.Split(t.Need, ",")[0])
}
