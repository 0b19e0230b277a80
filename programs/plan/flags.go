package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/plan/trial"
)

// options are the command line.
type options struct {
	logs           []string
	key, cost      string
	limits, curves []algo.Spec
	inFlight       []backtest.InFlight
	rates          []algo.Rate
	file           string
	where          []condition
	cover          float64
	keys           int
	json, html     string
	hash, quiet    bool
	maxDenied      float64
	maxKeys        float64
	trial          trial.Options
	address        keyfunc.IPConfig
	proxies        proxies
}

// notes are what the reader should know beside the report.
func (o *options) notes() (all []string) {
	if n := o.proxies.silent.Load(); n > 0 {
		all = append(all, fmt.Sprintf("Records of trusted proxies that had no forwarded address, so that their key is the proxy's: %d. Name the field that has X-Forwarded-For by -field forwarded=FIELD", n))
	}
	return all
}

// defaultRates are those of the curve.
const defaultRates = "1/min 2/min 5/min 10/min 20/min 30/min 1/s 2/s 3/s 5/s 7/s 10/s 15/s 20/s 30/s 50/s 70/s 100/s 200/s 500/s 1000/s"

// unitRates follow them if requests have costs, such as tokens or bytes.
const unitRates = " 2000/s 5000/s 10000/s 20000/s 50000/s 100000/s 1000000/s"

// defaultQuotas are the windows whose quotas are suggested.
const defaultQuotas = "sliding-window 1/min,fixed-window 1/day zone UTC"

func parse(args []string, messages io.Writer) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("plan", flag.ContinueOnError)
	f.SetOutput(io.Discard) // an error is printed once, by the caller
	f.Usage = func() {}
	usage := func() {
		f.SetOutput(messages)
		fmt.Fprintln(messages, "usage: plan [flags] LOG...\n\nLOG is an access log, compressed by gzip or not; - is the standard input.\nThe guide is docs/guides/limits.md.")
		f.PrintDefaults()
	}
	f.StringVar(&o.key, "key", "address", "`fields` whose requests share a limit, separated by commas: address, user, path, host, method, route, header:NAME, query:NAME, a name of the log, or global")
	f.StringVar(&o.cost, "cost", "", "`field` with the cost of a request, rounded up to a whole number; default: each costs 1")
	limitFlags(f, o)
	quotas := f.String("quotas", defaultQuotas, "`windows` whose quotas are suggested, separated by commas, or none")
	f.Func("where", "only records with `FIELD=VALUE`, FIELD!=VALUE, FIELD~REGEXP or FIELD!~REGEXP; if repeated, all must hold", func(s string) error {
		field, c, err := parseWhere(s)
		o.where, o.trial.Named = append(o.where, c), append(o.trial.Named, trial.Field{Name: field, Flag: "-where"})
		return err
	})
	f.Float64Var(&o.cover, "cover", 99.9, "`percent` of the keys to which the suggested limits deny nothing")
	f.IntVar(&o.keys, "keys", 10, "`number` of keys to list")
	f.StringVar(&o.json, "json", "", "`file` for the result as JSON; - is the standard output, in place of the table")
	f.StringVar(&o.html, "html", "", "`file` for the result as a page with pictures")
	f.BoolVar(&o.hash, "hash", false, "shows hashes in place of keys, other ones in each run")
	f.BoolVar(&o.quiet, "q", false, "no progress")
	f.Func("max-denied", "exit status 1 if a limit denies more than this `percent` of the requests", percent(&o.maxDenied))
	f.Func("max-keys-denied", "exit status 1 if a limit denies requests of more than this `percent` of the keys", percent(&o.maxKeys))
	o.maxDenied, o.maxKeys = noBound, noBound
	logFlags(f, o)
	err := f.Parse(args)
	if o.logs = f.Args(); err == nil && len(o.logs) == 0 {
		err = errors.New("name a log, or - for the standard input")
	}
	if errors.Is(err, flag.ErrHelp) {
		usage()
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w; plan -h lists the flags", err)
	}
	if o.cost != "" && o.rates == nil {
		o.rates = rates(defaultRates + unitRates)
	} else if o.rates == nil {
		o.rates = rates(defaultRates)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	for _, text := range strings.Split(*quotas, ",") {
		if text = strings.TrimSpace(text); text == "none" || text == "" {
			continue
		}
		spec, err := algo.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("-quotas: %w", err)
		}
		o.curves = append(o.curves, spec)
	}
	return o, nil
}

// limitFlags are the limits to try.
func limitFlags(f *flag.FlagSet, o *options) {
	f.Func("limit", "a `limit` to try, such as \"100/min burst 20\"; may be repeated", func(s string) (err error) {
		spec, err := algo.Parse(s)
		o.limits = append(o.limits, spec)
		return err
	})
	slots := func(total bool) func(string) error {
		return func(s string) error {
			n, err := strconv.Atoi(s)
			o.inFlight = append(o.inFlight, backtest.InFlight{Limit: n, Total: total})
			return err
		}
	}
	f.Func("in-flight", "a `number` of requests in flight of each key to try; may be repeated", slots(false))
	f.Func("in-flight-total", "a `number` of requests in flight of all keys together to try; may be repeated", slots(true))
	f.StringVar(&o.file, "limits", "", "`file` with limits to try: the gateway's YAML, with its keys and routes, or JSON of algo/reload")
	f.Func("rates", "`rates` of the curve, separated by spaces; default: "+defaultRates+", and with -cost"+unitRates, func(s string) error { return setRates(o, s) })
}

// noBound is a share that no limit exceeds.
const noBound = 1.1

func (o *options) bounded() bool { return o.maxDenied != noBound || o.maxKeys != noBound }

// check finds flags that make no sense, by themselves or together.
func (o *options) check() error {
	switch {
	case !(o.cover > 0 && o.cover <= 100):
		return fmt.Errorf("-cover is %v, want more than 0 and at most 100", o.cover)
	case o.keys < 0:
		return fmt.Errorf("-keys is %d, want 0 or more", o.keys)
	case o.trial.Window < 0 || o.trial.Window > 24*time.Hour:
		return fmt.Errorf("-window is %v, want 0 to 24h", o.trial.Window)
	case o.bounded() && len(o.limits) == 0 && len(o.inFlight) == 0 && o.file == "":
		return errors.New("-max-denied and -max-keys-denied are about limits on trial: name one by -limit, -in-flight or -limits")
	}
	if o.trial.Hide = o.hash; o.cost != "" {
		o.trial.Named = append(o.trial.Named, trial.Field{Name: o.cost, Flag: "-cost"})
	}
	return nil
}

// logFlags are the flags about the logs.
func logFlags(f *flag.FlagSet, o *options) {
	t := &o.trial
	t.Samples, t.Fields = 5, map[string]string{}
	f.StringVar(&t.Format, "format", "", "`format` of the logs: combined, json, text (of slog), csv or envoy; default: by the first line")
	f.Func("field", "`NAME=FIELD`: the log's own name of address, user, time, duration, header:NAME and so on; may be repeated", func(s string) error {
		name, field, ok := strings.Cut(s, "=")
		if !ok || name == "" || field == "" {
			return errors.New("want NAME=FIELD")
		}
		if header, ok := strings.CutPrefix(name, "header:"); ok {
			name = "header:" + http.CanonicalHeaderKey(header)
		}
		t.Fields[name], t.Named = field, append(t.Named, trial.Field{Name: field, Flag: "-field"})
		if name == "path" {
			t.Fields["target"] = field
		}
		return nil
	})
	f.Func("duration-unit", "`unit` of durations without one: ns, us, ms or s; default: that of the server", func(s string) error {
		if t.DurationUnit = map[string]time.Duration{"ns": 1, "us": time.Microsecond, "ms": time.Millisecond, "s": time.Second}[s]; t.DurationUnit == 0 {
			return errors.New("want ns, us, ms or s")
		}
		return nil
	})
	f.BoolVar(&t.TimeIsArrival, "time-is-arrival", false, "the time of a line is the request's arrival; default: its end, except in Traefik, Envoy and Apache")
	f.DurationVar(&t.Window, "window", 30*time.Second, "`time` by which lines may be out of order, as those of long requests are")
	t.MostBad = .01
	f.Func("bad", "`percent` of the lines that may be unreadable, or out of order by more than -window; default: 1", percent(&t.MostBad))
	f.IntVar(&o.address.IPv4Bits, "ipv4-bits", 32, "`length` of the prefix of a key's IPv4 address")
	f.IntVar(&o.address.IPv6Bits, "ipv6-bits", 64, "`length` of the prefix of a key's IPv6 address")
	f.Func("trusted", "`prefix` of your proxies: behind them the address is read from X-Forwarded-For; may be repeated", func(s string) error {
		p, err := netip.ParsePrefix(s)
		o.address.Trusted = append(o.address.Trusted, p)
		return err
	})
}

func percent(to *float64) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		if err != nil || !(n >= 0 && n <= 100) {
			return errors.New("want a number from 0 to 100")
		}
		*to = n / 100
		return nil
	}
}

func setRates(o *options, text string) (err error) {
	o.rates = nil
	for _, one := range strings.Fields(text) {
		var r algo.Rate
		if err = r.UnmarshalText([]byte(one)); err != nil {
			return err
		}
		o.rates = append(o.rates, r)
	}
	return nil
}

func rates(text string) []algo.Rate {
	var o options
	if err := setRates(&o, text); err != nil {
		panic(err)
	}
	return o.rates
}
