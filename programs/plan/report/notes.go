package report

import (
	"fmt"
	"strings"
)

// notes are what the reader should know of the logs.
func (r *Report) notes() (all []string) {
	if r.Unreadable > 0 {
		all = append(all, fmt.Sprintf("%s of %s could not be read; the first:\n  %s", group(r.Unreadable), count(r.Lines, "line"), strings.Join(r.Samples, "\n  ")))
	}
	if r.Late > 0 {
		all = append(all, fmt.Sprintf("%s out of order by more than -window, decided at the time of the latest record before", count(r.Late, "record")))
	}
	for _, t := range r.Tracks {
		for _, l := range t.Limits {
			if l.Overflowed > 0 {
				all = append(all, fmt.Sprintf("%s has room for fewer keys than the log has: it forgot keys %s times; give it a larger \"keys\"", l.Limit, group(int64(l.Overflowed))))
			}
		}
	}
	return append(all, r.Notes...)
}

// about is what the reader should know of a track.
func (r *Result) about() (notes []string) {
	of := "" // the limits that have names
	for i := range r.Limits {
		l := &r.Limits[i]
		if l.Name != "" {
			of += l.Name + ", "
		}
		if l.NotTried && r.Requests > 0 {
			notes = append(notes, l.title()+noDurations)
		}
	}
	if of != "" {
		of = strings.TrimSuffix(of, ", ") + ": "
	}
	for i, n := range r.result.Impossible {
		if n > 0 {
			notes = append(notes, fmt.Sprintf("%s: %s cost more than it can ever admit: raise it above the largest cost", r.Limits[i].title(), count(n, "request")))
		}
	}
	if len(r.unfit) > 0 {
		notes = append(notes, of+"no burst is large enough at "+strings.Join(r.unfit, ", ")+": choose a higher rate")
	}
	if r.Requests == 0 {
		notes = append(notes, of+"no record is on its routes, so it was not tried")
	}
	left := r.result.Left
	records := func(n int64) string {
		return fmt.Sprintf("%s%s without %s (%s) ", of, count(n, "record"), r.Key, percent(share(n, r.Requests+left)))
	}
	if left > 0 {
		notes = append(notes, records(left)+plural(left, "was", "were")+" left out")
	}
	if n := r.Missing - left; n > 0 {
		notes = append(notes, records(n)+plural(n, "shares", "share")+" one key")
	}
	if n := r.result.Costless; n > 0 {
		notes = append(notes, of+count(n, "record")+plural(n, " does", " do")+" not have the cost as a whole number of 1 or more: each cost 1")
	}
	return notes
}

// noDurations says why a limit was not tried.
const noDurations = " was not tried, since the log has no durations: name the field by -field duration=FIELD"
