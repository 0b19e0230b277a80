package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/backtest"
	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/plan/accesslog"
	"github.com/sluice-go/sluice/programs/plan/trial"
)

// named is a limit with its name and its place: the key and the records that it has.
type named struct {
	name     string
	spec     algo.Spec
	inFlight backtest.InFlight // in place of spec
	track    trial.Track       // without limits; its Key is nil if the file has no keys
	shadow   bool
}

// readLimits reads the limits of a file of the gateway (YAML), or of package algo/reload (JSON), whose
// limits have the key of the command line. seen counts the requests of trusted proxies.
func readLimits(file string, trusted []netip.Prefix, seen *proxies) ([]named, error) {
	if strings.HasSuffix(file, ".json") {
		return readReload(file)
	}
	f, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	g := gateway{routes: newRouter(), places: map[*config.Limit]map[string]*place{}}
	if g.address, err = addressKey(keyfunc.IPConfig{Trusted: slices.Concat(f.Trusted, trusted)}, seen); err != nil {
		return nil, err
	}
	for _, r := range f.Routes {
		g.add(r)
	}
	if len(g.limits) == 0 {
		return nil, fmt.Errorf("%s: no route has a limit", file)
	}
	return g.limits, nil
}

func readReload(file string) ([]named, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var specs map[string]algo.Spec
	if err := json.Unmarshal(data, &specs); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var limits []named
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		limits = append(limits, named{name: name, spec: specs[name]})
	}
	return limits, nil
}

// gateway collects the limits of the gateway's routes.
type gateway struct {
	address keyOf
	routes  *router
	places  map[*config.Limit]map[string]*place // by pattern
	limits  []named
}

// place is a route, as one of its limits sees it.
type place struct {
	*config.Route
	address  keyOf
	required []keyOf // a request without one of them is answered with 401, and charged nothing
}

func (g *gateway) add(r *config.Route) {
	g.routes.add(r)
	p := &place{Route: r, address: g.address}
	keys := []config.Key{{Kind: "ip"}} // of a client, as for in_flight_per_client
	for i := range r.Limits {
		l := r.Limits[len(r.Limits)-1-i]
		if _, key := g.key(l.Keys); r.MissingKey == "deny" {
			p.required = append(p.required, key)
		}
		if !config.HasKind(l.Keys, "global") {
			keys = l.Keys
		}
	}
	for _, l := range r.Limits {
		if g.places[l] == nil {
			g.places[l] = map[string]*place{}
			g.limit(named{name: l.Name, spec: l.Spec, shadow: l.Shadow, track: trial.Track{Cost: gatewayCost(l.Cost)}}, l.Keys, g.places[l])
		}
		g.places[l][r.Pattern] = p
	}
	here := map[string]*place{r.Pattern: p}
	if r.InFlight > 0 {
		n := named{name: r.Pattern + " in_flight", inFlight: backtest.InFlight{Limit: r.InFlight, Total: true}}
		g.limit(n, []config.Key{{Kind: "global"}}, here)
		g.limits[len(g.limits)-1].track.Only = func(record *accesslog.Record) bool {
			return g.routes.of(record).Pattern == r.Pattern && !p.lists(record, r.Access.Deny)
		}
	}
	if r.InFlightPerClient > 0 {
		g.limit(named{name: r.Pattern + " in_flight_per_client", inFlight: backtest.InFlight{Limit: r.InFlightPerClient}}, keys, here)
	}
}

// limit adds a limit of some places.
func (g *gateway) limit(n named, keys []config.Key, places map[string]*place) {
	n.track.Need, n.track.Key = g.key(keys)
	n.track.Only = func(r *accesslog.Record) bool {
		p := places[g.routes.of(r).Pattern]
		return p != nil && p.charges(r)
	}
	n.track.Shared = func(r *accesslog.Record) bool { return places[g.routes.of(r).Pattern].MissingKey == "shared" }
	g.limits = append(g.limits, n)
}

// charges reports whether the limits of a route are asked about a request.
func (p *place) charges(r *accesslog.Record) bool {
	for _, key := range p.required {
		if _, ok := key(r); !ok {
			return false
		}
	}
	return !p.lists(r, p.Access.Deny) && !p.lists(r, p.Access.Allow)
}

func (p *place) lists(r *accesslog.Record, list []netip.Prefix) bool {
	if len(list) == 0 {
		return false
	}
	key, _ := p.address(r)
	text, _, _ := strings.Cut(key, "/") // a prefix of a client of IPv6 is not split
	addr, err := netip.ParseAddr(text)
	return err == nil && slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// key is the key that the gateway would make, of the fields of a log.
func (g *gateway) key(keys []config.Key) (need string, key keyOf) {
	var parts []keyOf
	var names []string
	for _, k := range keys {
		name := k.String()
		part := func(r *accesslog.Record) (string, bool) { return r.Get(name) }
		switch k.Kind {
		case "ip":
			name, part = "address", g.address
		case "global":
			part = func(*accesslog.Record) (string, bool) { return "", true }
		case "route":
			part = func(r *accesslog.Record) (string, bool) { return g.routes.of(r).Pattern, true }
		case "path":
			part = func(r *accesslog.Record) (string, bool) {
				value := g.routes.of(r).PathValue(k.Name)
				return value, value != ""
			}
		case "query":
			part = func(r *accesslog.Record) (string, bool) {
				query, _ := r.Get("query")
				values, _ := url.ParseQuery(query)
				if all := values[k.Name]; len(all) == 1 {
					return all[0], all[0] != ""
				}
				return "", false
			}
		case "secret":
			name = "header:" + k.Name
		}
		parts, names = append(parts, part), append(names, name)
	}
	return strings.Join(names, ","), joined(parts)
}

// gatewayCost is the cost that the gateway would charge: a header without a whole number of 1 or more costs 1.
func gatewayCost(c config.Cost) func(*accesslog.Record) (int64, error) {
	return func(r *accesslog.Record) (int64, error) {
		if c.Header == "" {
			return max(c.Units, 1), nil
		}
		text, _ := r.Get("header:" + c.Header)
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return 1, trial.ErrNoCost
		}
		return n, nil
	}
}

// curveOf is the limit without its size, for a suggestion, if it has one.
func curveOf(s algo.Spec) (algo.Spec, bool) {
	switch s.Algorithm {
	case "", "token-bucket", "leaky-bucket", "nginx":
		return algo.Spec{Algorithm: s.Algorithm, Rate: s.Rate, NoDelay: s.NoDelay}, s.Rate.Count > 0
	case "fixed-window", "sliding-window", "sliding-log":
		s.MaxKeys, s.DenyNew = 0, false
		return s, true
	}
	return s, false
}
