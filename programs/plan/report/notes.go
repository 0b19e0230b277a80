package report

import (
	"fmt"
	"strings"
)

// notes are what the reader should know of the logs.
func (r *Report) notes() (all []string) {
	if r.Unreadable > 0 {
		all = append(all, fmt.Sprintf("%s of %s lines could not be read; the first:\n  %s", group(r.Unreadable), group(r.Lines), strings.Join(r.Samples, "\n  ")))
	}
	if r.Late > 0 {
		all = append(all, fmt.Sprintf("%s records were out of order by more than -window, and are decided at the time of the latest record before them", group(r.Late)))
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
func (r *Result) about(t Track, durations bool) (notes []string) {
	names := strings.Join(t.Names, ", ")
	if r.Requests == 0 {
		notes = append(notes, names+": no record is on its routes, so it was not tried")
	}
	if n := r.result.Left; n > 0 {
		notes = append(notes, fmt.Sprintf("%s records without %s were left out", group(n), r.Key))
	}
	if n := r.Missing - r.result.Left; n > 0 {
		notes = append(notes, fmt.Sprintf("%s records without %s share one key", group(n), r.Key))
	}
	if n := r.result.Costless; n > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s records do not have the cost as a whole number of 1 or more, and cost 1", names, group(n)))
	}
	for _, l := range r.result.Limits {
		if l.InFlight.Limit > 0 && !durations {
			notes = append(notes, names+": the log has no durations, so a limit on requests in flight was not tried; name the field by -field duration=FIELD")
		}
	}
	return notes
}
