// Package report writes what a trial has found: a table, JSON, and a page with pictures.
package report

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/plan/trial"
)

// Track says what a track of the trial is about.
type Track struct {
	Key    string   // its fields
	Names  []string // of the limits; empty: they have none
	Shadow bool
}

// Options are those of the report.
type Options struct {
	Cover float64 // the share of the keys that suggestions cover, 0 to 1
	Keys  int     // that are listed
	Hash  bool    // in place of keys
	Logs  []string
	Notes []string
}

// Report is the result, as JSON has it. Shares are from 0 to 1.
type Report struct {
	Logs       []string  `json:"logs"`
	Lines      int64     `json:"lines"`
	Unreadable int64     `json:"unreadable"`
	Samples    []string  `json:"unreadable_lines,omitempty"`
	Late       int64     `json:"out_of_order"`
	Cover      float64   `json:"cover"`
	Notes      []string  `json:"notes,omitempty"`
	Tracks     []*Result `json:"tracks"`
}

// Result is the result of the limits of one key.
type Result struct {
	Key          string       `json:"key"`
	From         time.Time    `json:"from"`
	To           time.Time    `json:"to"`
	Requests     int64        `json:"requests"`
	Units        int64        `json:"units"`
	Keys         int64        `json:"keys"`
	Missing      int64        `json:"without_key"`
	Limits       []Limit      `json:"limits,omitempty"`
	Suggestions  []Suggestion `json:"suggestions,omitempty"`
	NotCovered   []Key        `json:"not_covered,omitempty"` // by the tightest suggestion
	MostInFlight int64        `json:"most_in_flight,omitempty"`
	InFlight     *InFlight    `json:"in_flight,omitempty"`

	result trial.TrackResult
	unfit  []string // rates at which no burst is large enough
	cover  float64
	show   func(string) string
}

// Limit is what a limit would have done.
type Limit struct {
	Name       string  `json:"name,omitempty"`
	Limit      string  `json:"limit"`
	Shadow     bool    `json:"shadow,omitempty"`
	NotTried   bool    `json:"not_tried,omitempty"` // for lack of durations, or of requests on its routes
	Denied     int64   `json:"denied"`
	Share      float64 `json:"denied_share"`
	Delayed    int64   `json:"delayed,omitempty"`
	KeysDenied int64   `json:"keys_denied"`
	KeysShare  float64 `json:"keys_denied_share"`
	LockedOut  float64 `json:"longest_lockout_seconds"`
	Worst      []Key   `json:"worst,omitempty"`
	Minutes    []int64 `json:"denied_by_minute,omitempty"`
	Suggested  string  `json:"suggested,omitempty"` // of the same rate, for the covered keys
	Overflowed uint64  `json:"overflowed,omitempty"`
}

// InFlight are the requests of a key at once.
type InFlight struct {
	Covered int64 `json:"covered"` // the most of the covered keys
	All     int64 `json:"all"`
}

// Key is a key that is denied, or not covered.
type Key struct {
	Key       string  `json:"key"`
	Requests  int64   `json:"requests"`
	Denied    int64   `json:"denied,omitempty"`
	Needs     int64   `json:"needs,omitempty"`
	LockedOut float64 `json:"locked_out_seconds,omitempty"`
}

// New makes the report of a trial, whose tracks are about the same.
func New(t *trial.Result, about []Track, o Options) *Report {
	r := &Report{Logs: o.Logs, Lines: t.Lines, Unreadable: t.Bad, Samples: t.Samples, Late: t.Late, Cover: o.Cover, Notes: o.Notes}
	if t.WholeSeconds {
		r.Notes = append(r.Notes, "The log has whole seconds: a burst may be off by what its rate admits in a second, at 10/s by up to 10")
	}
	show := shown
	if o.Hash {
		show = func(key string) string { return fmt.Sprintf("%016x", keyfunc.Hash(key)) }
	}
	for i, track := range t.Tracks {
		show := func(key string) string {
			switch {
			case key != "":
				return show(key)
			case about[i].Key == "global":
				return "(all)"
			}
			return "(no key)"
		}
		one := &Result{
			Key: about[i].Key, From: track.First, To: track.Last, Requests: track.Requests, Units: track.Units, Keys: track.Keys,
			Missing: track.Missing, result: track, cover: o.Cover, show: show,
		}
		one.suggest(o)
		for k := range track.Limits {
			l := one.limit(&track.Limits[k], about[i], k, o)
			l.NotTried = track.Requests == 0 || track.Limits[k].InFlight.Limit > 0 && !t.Durations
			one.Limits = append(one.Limits, l)
		}
		r.Notes = append(r.Notes, one.about()...)
		if track.MostInFlight > 1 {
			one.MostInFlight = track.MostInFlight
			covered, _ := track.InFlight.Cover(o.Cover)
			all, _ := track.InFlight.Cover(1)
			one.InFlight = &InFlight{covered.Units, all.Units}
		}
		r.Tracks = append(r.Tracks, one)
	}
	return r
}

// limitText is the limit as a text.
func limitText(o *backtest.Outcome) string {
	switch {
	case o.InFlight.Total:
		return fmt.Sprintf("%d in flight in total", o.InFlight.Limit)
	case o.InFlight.Limit > 0:
		return fmt.Sprintf("%d in flight", o.InFlight.Limit)
	}
	return o.Spec.String()
}

// shown is a key without characters that a terminal would obey.
func shown(key string) string {
	if len(key) > 60 {
		key = strings.ToValidUTF8(key[:57], "") + "..."
	}
	if strings.IndexFunc(key, func(c rune) bool { return !unicode.IsPrint(c) }) >= 0 {
		return strconv.Quote(key)
	}
	return key
}

func (r *Result) limit(o *backtest.Outcome, about Track, i int, options Options) Limit {
	l := Limit{
		Name: about.Names[i], Limit: limitText(o), Shadow: about.Shadow, Denied: o.Denied, Delayed: o.Delayed,
		Share: share(o.Denied, r.Requests), KeysDenied: int64(len(o.Keys)), KeysShare: share(int64(len(o.Keys)), r.Keys),
		Minutes: o.Minutes, Overflowed: o.Overflowed,
	}
	for k, key := range o.Keys {
		l.LockedOut = max(l.LockedOut, key.LockedOut.Seconds())
		if k < options.Keys {
			l.Worst = append(l.Worst, Key{Key: r.show(key.Name), Requests: key.Requests, Denied: key.Denied, LockedOut: key.LockedOut.Seconds()})
		}
	}
	for k := range r.result.Curves {
		if c := &r.result.Curves[k]; kindOf(c.Spec) == kindOf(o.Spec) {
			if cover, ok := c.Cover(r.cover); ok {
				l.Suggested = cover.Spec.String()
			}
		}
	}
	return l
}

func share(part, of int64) float64 { return float64(part) / math.Max(float64(of), 1) }

// kindOf is a limit without its size and its table.
func kindOf(s algo.Spec) string {
	if isWindow(s) {
		s.Rate.Count = 1
	}
	return algo.Spec{Algorithm: s.Algorithm, Rate: s.Rate, NoDelay: s.NoDelay, Cells: s.Cells, Offset: s.Offset, AlignedTo: s.AlignedTo, Zone: s.Zone, StartDay: s.StartDay, Spread: s.Spread}.String()
}

func isWindow(s algo.Spec) bool {
	return strings.Contains(s.Algorithm, "-window") || s.Algorithm == "sliding-log"
}

// Exceeds names the limits that deny more than a share of the requests, or of the keys. The error names one
// that was not tried for lack of durations.
func (r *Report) Exceeds(requests, keys float64) (wrong []string, err error) {
	for _, t := range r.Tracks {
		for _, l := range t.Limits {
			if l.Shadow { // it denies nothing
				continue
			}
			if l.NotTried && t.Requests > 0 {
				err = cmp.Or(err, errors.New(l.title()+noDurations))
			}
			name := strings.TrimSpace(l.Name + " " + l.Limit)
			if l.Share > requests {
				wrong = append(wrong, fmt.Sprintf("%s denies %s of the requests, more than %s", name, percent(l.Share), percent(requests)))
			}
			if l.KeysShare > keys {
				wrong = append(wrong, fmt.Sprintf("%s denies requests of %s of the keys, more than %s", name, percent(l.KeysShare), percent(keys)))
			}
		}
	}
	return wrong, err
}

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
