package report

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Table writes the report for a terminal.
func (r *Report) Table(to io.Writer) error {
	w := &bytes.Buffer{}
	for _, n := range r.notes() {
		fmt.Fprintln(w, n+"\n")
	}
	for i, t := range r.Tracks {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, t.headline())
		t.tableOfLimits(w)
		t.tableOfSuggestions(w, r.Cover)
		if t.InFlight != nil {
			fmt.Fprintln(w, "\n"+t.Flying())
		}
	}
	_, err := w.WriteTo(to)
	return err
}

// Flying says how many requests were in flight.
func (r *Result) Flying() string {
	return fmt.Sprintf("In flight at once: at most %s of a key for %s of the keys, %s for all; %s of all keys together",
		group(r.InFlight.Covered), percentOf(r.cover), group(r.InFlight.All), group(r.MostInFlight))
}

func (r *Result) headline() string {
	if r.Requests == 0 {
		return "0 requests (" + r.Key + ")"
	}
	units := ""
	if r.Units != r.Requests {
		units = " (" + count(r.Units, "unit") + ")"
	}
	return fmt.Sprintf("%s%s of %s (%s), %s to %s UTC", count(r.Requests, "request"), units, count(r.Keys, "key"), r.Key,
		r.From.UTC().Format(time.DateTime), r.To.UTC().Format(time.DateTime))
}

func (r *Result) tableOfLimits(w io.Writer) {
	if len(r.Limits) == 0 {
		return
	}
	fmt.Fprintln(w, "\nLimits on trial")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	suggested := ""
	for _, l := range r.Limits {
		if l.Suggested != "" {
			suggested = "\tcovers " + percentOf(r.cover)
		}
	}
	fmt.Fprintf(t, "  limit\tdenied\tof requests\tkeys denied\tof keys\tlongest lockout%s\n", suggested)
	for _, l := range r.Limits {
		if l.NotTried {
			fmt.Fprintf(t, "  %s\tnot tried\n", l.title())
			continue
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s", l.title(), group(l.Denied), percent(l.Share), group(l.KeysDenied), percent(l.KeysShare), span(l.LockedOut))
		if suggested != "" {
			fmt.Fprintf(t, "\t%s", l.Suggested)
		}
		fmt.Fprintln(t)
	}
	t.Flush()
	for _, l := range r.Limits {
		if len(l.Worst) == 0 {
			continue
		}
		fmt.Fprintf(w, "\nMost denied by %s\n", l.title())
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		fmt.Fprintln(t, "  key\tdenied\tof\tlockout")
		for _, k := range l.Worst {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", k.Key, group(k.Denied), group(k.Requests), span(k.LockedOut))
		}
		t.Flush()
	}
}

func (l *Limit) title() string {
	title := l.Limit
	if l.Name != "" {
		title = l.Name + ": " + title
	}
	if l.Shadow {
		title += " (shadow)"
	}
	return title
}

func (r *Result) tableOfSuggestions(w io.Writer, cover float64) {
	if len(r.Suggestions) == 0 || len(r.Limits) > 0 && r.Limits[0].Suggested != "" && len(r.Suggestions) == 1 {
		return
	}
	fmt.Fprintf(w, "\nLimits that deny nothing to %s of the keys\n", percentOf(cover))
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "  limit\tmost in a minute\tkeys covered\ttheir requests\tfor all keys")
	for _, s := range r.Suggestions {
		mark, minute := "  ", ""
		if s.Tightest {
			mark = "* "
		}
		if s.Minute > 0 {
			minute = group(s.Minute)
		}
		fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\t%s\n", mark, s.Limit, minute, group(s.Keys), percent(share(s.Requests, r.Requests)), s.All)
	}
	t.Flush()
	best := r.best()
	if best == nil {
		return
	}
	fmt.Fprintf(w, "\n* %s\n", r.answer(best))
	if len(r.NotCovered) == 0 {
		return
	}
	t = tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "  key\tneeds a burst of\trequests")
	for _, k := range r.NotCovered {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", k.Key, group(k.Needs), group(k.Requests))
	}
	t.Flush()
}

// percentOf writes the share that was asked for, with all of its digits.
func percentOf(share float64) string { return fmt.Sprintf("%.6g %%", 100*share) }
