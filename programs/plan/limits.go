package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/examples/gateway/config"
	"github.com/sluice-go/sluice/programs/plan/accesslog"
)

// named is a limit with its name and its place: the key and the records that it has.
type named struct {
	name   string
	spec   algo.Spec
	key    string // for messages
	keyOf  keyOf
	only   condition
	cost   string // the field
	shadow bool
}

// readLimits reads the limits of a file of the gateway (YAML), or of package algo/reload (JSON), whose
// limits have the key of the command line.
func readLimits(file string, address keyOf) ([]named, error) {
	if strings.HasSuffix(file, ".json") {
		return readReload(file)
	}
	f, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	routes := newRouter()
	var limits []named
	places := map[*config.Limit]map[string]bool{}
	for _, r := range f.Routes {
		if err := routes.add(r.Pattern); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, l := range r.Limits {
			if places[l] == nil {
				places[l] = map[string]bool{}
				n := named{name: l.Name, spec: l.Spec, shadow: l.Shadow}
				if l.Cost.Header != "" {
					n.cost = "header:" + l.Cost.Header
				}
				n.key, n.keyOf = gatewayKey(l.Keys, address, routes)
				patterns := places[l]
				n.only = func(r *accesslog.Record) bool { return patterns[routes.of(r)] }
				limits = append(limits, n)
			}
			places[l][r.Pattern] = true
		}
	}
	if len(limits) == 0 {
		return nil, fmt.Errorf("%s: no route has a limit", file)
	}
	return limits, nil
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

// gatewayKey is the key that the gateway would make, of the fields of a log.
func gatewayKey(keys []config.Key, address keyOf, routes *router) (need string, key keyOf) {
	var parts []keyOf
	var names []string
	for _, k := range keys {
		name := k.String()
		switch k.Kind {
		case "ip":
			name = "address"
			parts = append(parts, address)
		case "global":
			parts = append(parts, func(*accesslog.Record) (string, bool) { return "", true })
		case "route":
			parts = append(parts, func(r *accesslog.Record) (string, bool) { return routes.of(r), true })
		default:
			if k.Kind == "secret" {
				name = "header:" + k.Name
			}
			field := name
			parts = append(parts, func(r *accesslog.Record) (string, bool) { return r.Get(field) })
		}
		names = append(names, name)
	}
	return strings.Join(names, ","), joined(parts)
}

// router finds the route of a record, as the gateway does. It is used by several readers at once.
type router struct {
	mux   *http.ServeMux
	known sync.Map // pattern by method, host and path
	size  int
	mu    sync.Mutex
}

func newRouter() *router { return &router{mux: http.NewServeMux()} }

// mostKnown bounds the routes, and the keys of addresses, that are remembered.
const mostKnown = 100_000

func (r *router) add(pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	r.mux.Handle(pattern, http.NotFoundHandler())
	return nil
}

func (r *router) of(record *accesslog.Record) string {
	method, _ := record.Get("method")
	host, _ := record.Get("host")
	target, _ := record.Get("path")
	id := method + " " + host + " " + target
	if known, ok := r.known.Load(id); ok {
		return known.(string)
	}
	plain, err := url.PathUnescape(target)
	if err != nil {
		plain = target
	}
	clean := path.Clean("/" + plain)
	if strings.HasSuffix(plain, "/") && clean != "/" {
		clean += "/"
	}
	_, pattern := r.mux.Handler(&http.Request{Method: method, Host: host, URL: &url.URL{Path: clean}})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size++; r.size <= mostKnown {
		r.known.Store(strings.Clone(id), pattern)
	}
	return pattern
}

// curveOf is the limit without its size, for a suggestion, if it has one.
func curveOf(s algo.Spec) (algo.Spec, bool) {
	switch s.Algorithm {
	case "", "token-bucket", "leaky-bucket", "nginx":
		return algo.Spec{Algorithm: s.Algorithm, Rate: s.Rate, NoDelay: s.NoDelay}, true
	case "fixed-window", "sliding-window", "sliding-log":
		s.MaxKeys, s.DenyNew = 0, false
		return s, true
	}
	return s, false
}
