// Plan finds a rate limit in access logs: what a limit would have denied, and which limit would have denied
// nothing to the usual keys. It reads files, writes files, and uses no network.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/programs/plan/accesslog"
	"github.com/sluice-go/sluice/programs/plan/report"
	"github.com/sluice-go/sluice/programs/plan/trial"
)

// Exit statuses.
const (
	exitDenies = 1 // a limit denies more than it may
	exitError  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	status, err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		status = exitError
	}
	stop()
	os.Exit(status)
}

// tracks are the limits to try by their keys, and the curves of the key of the command line.
func (o *options) tracks() ([]trial.Track, []report.Track, error) {
	address, err := addressKey(o.address, &o.proxies)
	if err != nil {
		return nil, nil, err
	}
	key, err := parseKey(o.key, address)
	if err != nil {
		return nil, nil, err
	}
	only := all(o.where)
	main := trial.Track{Key: key, Need: o.key, Only: only, Cost: costOf(o.cost)}
	about := report.Track{Key: o.key}
	for _, s := range o.limits {
		main.Limits = append(main.Limits, s)
		about.Names = append(about.Names, "")
	}
	for _, f := range o.inFlight {
		main.InFlight, about.Names = append(main.InFlight, f), append(about.Names, "")
	}
	var limits []named
	if o.file != "" {
		if limits, err = readLimits(o.file, o.address.Trusted, &o.proxies); err != nil {
			return nil, nil, err
		}
	}
	tracks, abouts := []trial.Track{}, []report.Track{}
	for _, l := range limits {
		if l.track.Key == nil { // the file has no keys
			main.Limits = append(main.Limits, l.spec)
			about.Names = slices.Insert(about.Names, len(main.Limits)-1, l.name)
			continue
		}
		tracks, abouts = append(tracks, l.alone(only)), append(abouts, report.Track{Key: l.track.Need, Names: []string{l.name}, Shadow: l.shadow})
	}
	if len(tracks) > 0 && len(about.Names) == 0 {
		if o.cost != "" || o.key != "address" {
			return nil, nil, fmt.Errorf("-key and -cost are not used by the limits of %s: a limit of that file names its own: cost: header:NAME, and -field header:NAME=FIELD", o.file)
		}
		return tracks, abouts, nil
	}
	for _, r := range o.curveRates(main.Limits) {
		main.Curves = append(main.Curves, algo.Spec{Rate: r})
	}
	main.Curves = append(main.Curves, o.curves...)
	return append(tracks, main), append(abouts, about), nil
}

// alone is the track of a limit with its own key, of the records that only takes too.
func (l *named) alone(only condition) trial.Track {
	t := l.track
	t.Only = func(r *accesslog.Record) bool { return l.track.Only(r) && (only == nil || only(r)) }
	if l.inFlight.Limit > 0 {
		t.InFlight = []backtest.InFlight{l.inFlight}
	} else {
		t.Limits = []algo.Spec{l.spec}
	}
	if curve, ok := curveOf(l.spec); ok {
		t.Curves = []algo.Spec{curve}
	}
	return t
}

// curveRates are the rates of the curve, and those of the buckets on trial, in order.
func (o *options) curveRates(limits []algo.Spec) []algo.Rate {
	all := slices.Clone(o.rates)
	speed := func(r algo.Rate) float64 { return float64(r.Count) / r.Period.Seconds() }
	for _, s := range limits {
		bucket := s.Algorithm == "" || s.Algorithm == "token-bucket"
		if bucket && !slices.ContainsFunc(all, func(r algo.Rate) bool { return r == s.Rate }) {
			all = append(all, s.Rate)
		}
	}
	slices.SortStableFunc(all, func(a, b algo.Rate) int { return cmp.Compare(speed(a), speed(b)) })
	return all
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0, nil
	}
	if err != nil {
		return exitError, err
	}
	tracks, about, err := o.tracks()
	if err != nil {
		return exitError, err
	}
	var lines atomic.Int64
	o.trial.Lines = &lines
	logs, closeLogs, err := open(o.logs, stdin)
	if err != nil {
		return exitError, err
	}
	defer closeLogs()
	done := showProgress(stderr, o.quiet, logs, &lines)
	began := time.Now()
	result, err := trial.Run(ctx, plain(logs), tracks, o.trial)
	done()
	if err != nil {
		return exitError, err
	}
	r := report.New(result, about, report.Options{Cover: math.Round(o.cover*1e10) / 1e12, Keys: o.keys, Hash: o.hash, Logs: o.logs, Notes: o.notes()})
	if err := write(o, r, stdout); err != nil {
		return exitError, err
	}
	if !o.quiet {
		took := time.Since(began)
		fmt.Fprintf(stderr, "%d lines in %v, %.0f a second\n", result.Lines, took.Round(10*time.Millisecond), float64(result.Lines)/took.Seconds())
	}
	wrong, err := r.Exceeds(o.maxDenied, o.maxKeys)
	if o.bounded() && err != nil {
		return exitError, err
	}
	if len(wrong) > 0 {
		for _, w := range wrong {
			fmt.Fprintln(stderr, "plan:", w)
		}
		return exitDenies, nil
	}
	return 0, nil
}

// write writes the report as it was asked for.
func write(o *options, r *report.Report, stdout io.Writer) error {
	if o.json != "-" {
		if err := r.Table(stdout); err != nil {
			return err
		}
	}
	for _, to := range []struct {
		file  string
		write func(io.Writer) error
	}{{o.json, r.JSON}, {o.html, r.HTML}} {
		switch to.file {
		case "":
		case "-":
			if err := to.write(stdout); err != nil {
				return err
			}
		default:
			f, err := os.Create(to.file)
			if err != nil {
				return err
			}
			if err := errors.Join(to.write(f), f.Close()); err != nil {
				return err
			}
		}
	}
	return nil
}
