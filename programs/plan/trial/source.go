package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	held   *entry
	items  []item // reused

	// Valid when out is closed.
	err                              error
	lines, bad, late                 int64
	matched, missing, left, costless []int64 // by track: records that it takes, without a key, left out for that, without a cost
	samples, fields                  []string
	unseen                           []Field // that no line has had
	taken, unpriced                  int64   // records of some track; lines without a cost that can be read
	sampled, reported                int64
	fractions, durations             bool // of seconds in the times; of requests
}

func newSource(l Log, tracks []Track, o Options) *source {
	n := len(tracks)
	return &source{
		log: l, tracks: tracks, o: o, out: make(chan batch, 4), matched: make([]int64, n), missing: make([]int64, n), costless: make([]int64, n), left: make([]int64, n),
		unseen: slices.Clone(o.Named), order: order{window: int64(o.Window), seconds: map[int64]batch{}},
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
	s.report()
}

func (s *source) read(ctx context.Context) error {
	config := s.o.Config
	config.Bad = func(e *accesslog.Error) { s.spoiled(e.Line, e.Reason) }
	in, err := accesslog.NewReader(s.log.Name, s.log.Reader, config)
	if err != nil {
		return err
	}
	for {
		r, err := in.Next()
		s.lines = in.Lines()
		switch {
		case errors.Is(err, io.EOF):
			if s.held != nil {
				s.count(*s.held)
			}
			return s.send(ctx, append(s.ready, s.order.rest()...))
		case err != nil && s.o.Hide && !errors.Is(err, io.ErrUnexpectedEOF):
			return fmt.Errorf("%s:%d: the log cannot be read, or its format is not recognized; the reason may show a key and is hidden", s.log.Name, s.lines)
		case err != nil:
			return err
		}
		if s.sampled++; s.sampled <= sampledRecords {
			s.note(r)
		}
		if len(s.unseen) > 0 {
			s.unseen = slices.DeleteFunc(s.unseen, func(f Field) bool { return r.Has(f.Name) })
		}
		if s.lines-s.reported >= batchSize {
			if s.report(); ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if err := s.take(r); err != nil {
			s.spoiled(s.lines, err)
			continue
		}
		if s.sampled == earlyRecords {
			for i, t := range s.tracks {
				if s.keyless(i) {
					return noKey(s, t)
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

// keyless reports whether no record of a track has its key.
func (s *source) keyless(track int) bool {
	return s.matched[track] > 0 && s.matched[track] == s.missing[track]
}

// spoiled counts a line that cannot be used.
func (s *source) spoiled(line int64, reason error) {
	if s.bad++; len(s.samples) < s.o.Samples {
		if s.o.Hide {
			reason = errors.New("hidden, because it may show a key")
		}
		s.samples = append(s.samples, (&accesslog.Error{File: s.log.Name, Line: line, Reason: reason}).Error())
	}
}

// report reports progress.
func (s *source) report() {
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

// item is a record for one track.
type item struct {
	event
	missing, left, costless bool // it has no key; is left out for that; its cost is a default
}

// entry is a record for all tracks that take it.
type entry struct {
	at, line int64
	items    []item
}

// take makes the events of a record, one for each track.
func (s *source) take(r *accesslog.Record) error {
	if y := r.Arrival.Year(); y < 1970 || y > 2200 {
		return fmt.Errorf("time is %v, want one from 1970 to 2200", r.Arrival.Format(time.RFC3339))
	}
	s.fractions = s.fractions || !r.WholeSecond
	s.durations = s.durations || r.Duration > 0
	e := entry{at: r.Arrival.UnixNano(), line: s.lines, items: s.items[:0]}
	for i := range s.tracks {
		t := &s.tracks[i]
		if t.Only != nil && !t.Only(r) {
			continue
		}
		one := item{event: event{at: e.at, took: int64(r.Duration), cost: 1, track: i}}
		key, ok := t.Key(r)
		one.key, one.missing = strings.Clone(key), !ok
		one.left = !ok && (t.Shared == nil || !t.Shared(r))
		if t.Cost != nil {
			var err error
			if one.cost, err = t.Cost(r); err != nil && !errors.Is(err, ErrNoCost) {
				s.unpriced++
				return err
			}
			one.costless = err != nil
		}
		e.items = append(e.items, one)
	}
	s.items = e.items
	s.place(e)
	return nil
}

// farAhead is how much later than the lines before it a line waits for the next one to confirm it. Otherwise
// one line with a wrong year would make all others late.
const farAhead = int64(24 * time.Hour)

// place counts an entry, and the one that waits for it.
func (s *source) place(e entry) {
	if h := s.held; h != nil {
		s.held = nil
		if e.at < h.at-farAhead {
			s.spoiled(h.line, fmt.Errorf("time is %v, more than a day after the lines around it", time.Unix(0, h.at).UTC().Format(time.RFC3339)))
		} else {
			s.count(*h)
		}
	}
	if !s.order.begun || e.at > s.order.newest*second+farAhead {
		e.items = slices.Clone(e.items)
		s.held = &e
		return
	}
	s.count(e)
}

func (s *source) count(e entry) {
	if len(e.items) > 0 {
		s.taken++
	}
	isLate := false
	for _, one := range e.items {
		s.matched[one.track]++
		if one.missing {
			s.missing[one.track]++
		}
		if one.left {
			s.left[one.track]++
			continue
		}
		if one.costless {
			s.costless[one.track]++
		}
		if s.order.late(one.at) {
			isLate = true
			s.ready = append(s.ready, one.event) // it is decided at once
			continue
		}
		s.order.add(one.event)
	}
	if isLate {
		s.late++
	}
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
