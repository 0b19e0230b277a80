package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/programs/plan/accesslog"
)

// source reads one log, and sends its events in order of time.
type source struct {
	log    Log
	tracks []Track
	o      Options
	out    chan batch
	order  order
	ready  batch // events in order that wait for a full batch

	// Valid when out is closed.
	err               error
	lines, bad, late  int64
	matched, missing  []int64 // by track: records that it takes, and those without a key
	samples, fields   []string
	sampled, reported int64
}

func newSource(l Log, tracks []Track, o Options) *source {
	return &source{
		log: l, tracks: tracks, o: o, out: make(chan batch, 4), matched: make([]int64, len(tracks)), missing: make([]int64, len(tracks)),
		order: order{window: int64(o.Window), seconds: map[int64]batch{}},
	}
}

// sampledRecords are looked at for the names of fields.
const sampledRecords = 100

// earlyRecords decide whether a log lacks the field of a key.
const earlyRecords = 100_000

func (s *source) run(ctx context.Context) {
	defer close(s.out)
	if err := s.read(ctx); err != nil && !errors.Is(err, context.Canceled) {
		s.err = err
	}
	s.count()
}

func (s *source) read(ctx context.Context) error {
	config := s.o.Config
	config.Bad = func(e *accesslog.Error) {
		if s.bad++; len(s.samples) < s.o.Samples {
			s.samples = append(s.samples, e.Error())
		}
	}
	in, err := accesslog.NewReader(s.log.Name, s.log.Reader, config)
	if err != nil {
		return err
	}
	for {
		r, err := in.Next()
		s.lines = in.Lines()
		if errors.Is(err, io.EOF) {
			return s.send(ctx, append(s.ready, s.order.rest()...))
		}
		if err != nil {
			return err
		}
		if s.sampled++; s.sampled <= sampledRecords {
			s.note(r)
		}
		if s.lines-s.reported >= batchSize {
			s.count()
		}
		if err := s.take(r); err != nil {
			config.Bad(&accesslog.Error{File: s.log.Name, Line: s.lines, Reason: err})
			continue
		}
		if s.sampled == earlyRecords {
			for i, t := range s.tracks {
				if s.matched[i] > 0 && s.matched[i] == s.missing[i] {
					return fmt.Errorf("%s: %w", s.log.Name, noKey(t, s.fields))
				}
			}
		}
		if s.ready = append(s.ready, s.order.due()...); len(s.ready) >= batchSize {
			if err := s.send(ctx, s.ready); err != nil {
				return err
			}
			s.ready = make(batch, 0, 2*batchSize)
		}
	}
}

// count reports progress.
func (s *source) count() {
	if s.o.Lines != nil {
		s.o.Lines.Add(s.lines - s.reported)
	}
	s.reported = s.lines
}

// note remembers the names of the fields of a record.
func (s *source) note(r *accesslog.Record) {
	for _, f := range r.Fields() {
		if !slices.Contains(s.fields, f) {
			s.fields = append(s.fields, f)
		}
	}
}

// take makes the events of a record, one for each track.
func (s *source) take(r *accesslog.Record) error {
	if y := r.Arrival.Year(); y < 1970 || y > 2200 {
		return fmt.Errorf("time is %v, want one from 1970 to 2200", r.Arrival.Format(time.RFC3339))
	}
	for i := range s.tracks {
		t := &s.tracks[i]
		if t.Only != nil && !t.Only(r) {
			continue
		}
		s.matched[i]++
		key, ok := t.Key(r)
		if !ok {
			s.missing[i]++
			continue
		}
		e := event{at: r.Arrival.UnixNano(), took: int64(r.Duration), cost: 1, key: strings.Clone(key), track: i}
		if t.Cost != nil {
			var err error
			if e.cost, err = t.Cost(r); err != nil {
				return err
			}
		}
		if s.order.add(e) {
			s.late++
		}
	}
	return nil
}

func (s *source) send(ctx context.Context, events batch) error {
	for part := range slices.Chunk(events, batchSize) {
		select {
		case s.out <- part:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// order sorts events that are out of order by less than a window. It keeps them by the second.
type order struct {
	window  int64 // ns
	seconds map[int64]batch
	newest  int64 // second
	sent    int64 // second up to which events were sent
	begun   bool
}

const second = int64(time.Second)

// add takes an event, and reports whether it is too late to be sorted: then it comes next.
func (o *order) add(e event) (late bool) {
	at := e.at / second
	if !o.begun {
		o.begun, o.newest, o.sent = true, at, at-o.window/second-1
	}
	if late = at <= o.sent; late {
		at = o.sent + 1
	}
	o.seconds[at] = append(o.seconds[at], e)
	o.newest = max(o.newest, at)
	return late
}

// due returns the events of the seconds that the window has passed.
func (o *order) due() batch {
	until := o.newest - o.window/second - 1
	if until <= o.sent {
		return nil
	}
	return o.take(until)
}

// rest returns all events that are left.
func (o *order) rest() batch { return o.take(o.newest) }

func (o *order) take(until int64) (events batch) {
	for _, at := range slices.Sorted(maps.Keys(o.seconds)) {
		if at > until {
			break
		}
		one := o.seconds[at]
		delete(o.seconds, at)
		slices.SortStableFunc(one, func(a, b event) int { return int(min(max(a.at-b.at, -1), 1)) })
		if events == nil {
			events = one
		} else {
			events = append(events, one...)
		}
	}
	o.sent = max(o.sent, until)
	return events
}
