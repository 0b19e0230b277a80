package trial

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Demand is the units over time, of all keys and of those with the most.
type Demand struct {
	// Interval is a second to a week, so that there are at most 1500. The first begins at Start.
	Interval time.Duration
	Start    time.Time
	All      []int64
	Heaviest []Heavy
}

// Heavy is a key with its units in each interval.
type Heavy struct {
	Key       string
	Units     int64 // at least
	Intervals []int64
}

// demand counts units, and finds the heaviest keys (Space-Saving: Metwally, Agrawal, El Abbadi, ICDT
// 2005): a new key takes the place of the one with the least, and its count.
type demand struct {
	begun bool
	width int   // of widths
	base  int64 // number of the first interval
	all   []int64
	found []heavy        // a heap, the one with the least units on top
	last  map[string]int // place in it
}

type heavy struct {
	key         string
	units, over int64   // its units are units-over at least, and units at most
	from        int     // the interval in which it took the place
	intervals   []int64 // since then
}

const (
	heaviestKeys  = 512
	mostIntervals = 1500
	sinceYearOne  = 62135596800 // seconds until 1970: weeks begin on Monday then
)

// widths are the lengths of an interval in seconds; each is a multiple of the one before.
var widths = [...]int64{1, 5, 15, 60, 5 * 60, 15 * 60, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600}

func (d *demand) add(e *event) {
	at := d.index(e.at / second)
	count(&d.all, at, e.cost)
	if e.cost > 0 {
		d.charge(e.key, e.cost, at)
	}
}

// index returns the interval of an instant. Intervals become longer when they are too many.
func (d *demand) index(at int64) int {
	at += sinceYearOne
	if !d.begun {
		d.begun, d.base, d.last = true, at, map[string]int{}
	}
	for at/widths[d.width]-d.base >= mostIntervals && d.width < len(widths)-1 {
		factor := widths[d.width+1] / widths[d.width]
		d.all = fold(d.all, d.base, factor)
		for i := range d.found {
			h := &d.found[i]
			h.intervals = fold(h.intervals, d.base+int64(h.from), factor)
			h.from = int((d.base+int64(h.from))/factor - d.base/factor)
		}
		d.base /= factor
		d.width++
	}
	return int(min(max(at/widths[d.width]-d.base, 0), mostIntervals-1))
}

// fold adds up the intervals of a series.
func fold(s []int64, base, factor int64) (folded []int64) {
	for i, n := range s {
		count(&folded, int((base+int64(i))/factor-base/factor), n)
	}
	return folded
}

func count(s *[]int64, index int, n int64) {
	for len(*s) <= index {
		*s = append(*s, 0)
	}
	at := &(*s)[max(index, 0)]
	*at = sum(*at, n)
}

// sum adds numbers that are not negative, up to the largest one.
func sum(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// charge gives units to a key.
func (d *demand) charge(key string, units int64, at int) {
	i, known := d.last[key]
	switch {
	case known:
	case len(d.found) < heaviestKeys:
		i = len(d.found)
		d.found = append(d.found, heavy{key: key, from: at})
		for ; i > 0; i = (i - 1) / 2 { // it has nothing yet
			d.swap(i, (i-1)/2)
		}
		d.last[key] = i
	default:
		h := &d.found[0]
		delete(d.last, h.key)
		d.last[key] = 0
		*h = heavy{key: key, units: h.units, over: h.units, from: at, intervals: h.intervals[:0]}
	}
	h := &d.found[i]
	h.units = sum(h.units, units)
	count(&h.intervals, at-h.from, units)
	d.sink(i)
}

// sink moves a key down to its place in the heap.
func (d *demand) sink(i int) {
	for {
		least := 2*i + 1
		if least+1 < len(d.found) && d.found[least+1].units < d.found[least].units {
			least++
		}
		if least >= len(d.found) || d.found[i].units <= d.found[least].units {
			return
		}
		d.swap(i, least)
		i = least
	}
}

func (d *demand) swap(i, k int) {
	d.found[i], d.found[k] = d.found[k], d.found[i]
	d.last[d.found[i].key], d.last[d.found[k].key] = i, k
}

func (d *demand) result() Demand {
	width := widths[d.width]
	out := Demand{Interval: time.Duration(width) * time.Second, Start: time.Unix(d.base*width-sinceYearOne, 0).UTC(), All: d.all}
	for _, h := range d.found {
		if h.units-h.over > h.over { // else it may be the latest of many small ones
			out.Heaviest = append(out.Heaviest, Heavy{h.key, h.units - h.over, append(make([]int64, h.from), h.intervals...)})
		}
	}
	slices.SortFunc(out.Heaviest, func(a, b Heavy) int { return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Key, b.Key)) })
	return out
}
