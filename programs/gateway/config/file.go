package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"
)

// File is a configuration as the file says it, with its defaults.
type File struct {
	// Path is where it was read, and Hash identifies its contents.
	Path, Hash string
	// Secrets is what SecretsNow was when the file was read.
	Secrets string
	// Listen is the address for clients and Admin the one for operators.
	Listen, Admin string
	// TLS is for the address for clients.
	TLS TLS
	// UpstreamTLS is for upstreams of https://.
	UpstreamTLS UpstreamTLS
	// AdminToken is where the token lies that allows operators to act; without
	// it they can only look, from the same machine.
	AdminToken Secret
	// ShowKeys shows the keys of limited callers to operators, and not only their
	// hashes.
	ShowKeys bool
	// Trusted are the proxies whose X-Forwarded-For is believed.
	Trusted []netip.Prefix
	// Pepper is where the key lies under which secrets and callers are hashed.
	Pepper Secret
	// JWT is how bearer tokens are verified.
	JWT JWT
	// Store is where the limits keep debts.
	Store Store
	// Snapshot is where limits of the local store keep debts over a restart.
	Snapshot Snapshot
	// Overload protects the process as a whole.
	Overload Overload
	// AccessLog is the format of the access log: text, json, or off.
	AccessLog string
	// CORS is for pages in browsers.
	CORS CORS
	// Access is the lists of routes without their own.
	Access Access
	// Denial is the answer of routes without their own; nil: the standard one.
	Denial *Denial
	// Timeouts of the servers.
	Timeouts Timeouts
	// Limits are those that several routes share, by their names.
	Limits []*Limit
	// Routes of the gateway.
	Routes []*Route
	// Domains of the rate limit service.
	Domains []*Domain
	// DomainHeaders are added to responses of domains without headers of their
	// own.
	DomainHeaders Headers
	// EnvoyFiles are patterns of files of envoyproxy/ratelimit, whose domains are
	// among Domains.
	EnvoyFiles []string
	// GRPC are the settings of the rate limit service's connections.
	GRPC GRPC

	// Warnings are what is accepted, and has no effect or one that is hardly meant.
	Warnings Errors

	at map[string]*yaml.Node
}

// Errorf is an error about a field of the file that only showed when it was put
// in force; field is empty if it is none in particular.
func (f *File) Errorf(field, format string, args ...any) error {
	e := &Error{File: f.Path, Field: field, Reason: fmt.Sprintf(format, args...)}
	if n := f.at[field]; n != nil {
		e.Line, e.Column = n.Line, n.Column
	}
	return Errors{e}
}

// Overload is the adaptive limit on requests in flight.
type Overload struct {
	Off         bool
	MaxInFlight int // 0: no bound but the adaptive one
}

// Timeouts are the times that the servers wait.
type Timeouts struct {
	ReadHeader time.Duration // for the head of a request
	Body       time.Duration // for the next bytes of a request's body
	WholeBody  time.Duration // for a request's body from its first byte to its last
	Idle       time.Duration // for the next request on a connection
	Upstream   time.Duration // for the head of the upstream's answer
	UpIdle     time.Duration // for the next request on a connection to an upstream
	Send       time.Duration // for the client to take the next bytes of its answer
	Unready    time.Duration // from turning unready to the end of accepting
	Drain      time.Duration // for requests that run at the end
}

func defaults() *File {
	return &File{
		DomainHeaders: Headers{IETF: true},
		Listen:        "127.0.0.1:8080",
		Admin:         "127.0.0.1:8081",
		AccessLog:     "off",
		Store:         Store{Kind: Local, Timeout: 20 * time.Millisecond, Fallback: "local"},
		Timeouts: Timeouts{
			ReadHeader: 10 * time.Second, Body: 30 * time.Second, WholeBody: 30 * time.Minute, Idle: 2 * time.Minute, Upstream: 30 * time.Second, UpIdle: time.Second, Send: time.Minute,
			Unready: 2 * time.Second, Drain: 30 * time.Second,
		},
	}
}

// Load reads the file at path. Mistakes in its contents are [Errors].
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse is [Load] with the contents at hand; path is for messages.
func Parse(path string, data []byte) (*File, error) {
	r := &reader{file: path, at: map[string]*yaml.Node{}}
	f := defaults()
	f.Path, f.at = path, r.at
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		return nil, Errors{broken(path, err)}
	}
	f.read(value{r, doc.Content[0], ""})
	r.errs.sort()
	// First the fingerprint, then the files: one that changes in between is read again.
	var err error
	f.Hash, err = Fingerprint(data, f.EnvoyFiles)
	f.Secrets = f.SecretsNow()
	f.readEnvoyFiles(r)
	if len(r.errs) > 0 {
		return nil, r.errs
	}
	return f, err
}

// broken is the error of a file that is not YAML.
func broken(path string, err error) *Error {
	e := &Error{File: path, Reason: err.Error()}
	var at *yaml.LoadError
	if errors.As(err, &at) {
		e.Line, e.Column, e.Reason = at.Mark.Line, at.Mark.Column, at.Message
		if at.ContextMsg != "" {
			e.Reason += ", " + at.ContextMsg
		}
	}
	return e
}

func (f *File) read(v value) {
	var limits, routes, domains, trusted *value
	v.fields(
		field{name: "listen", read: func(v value) { f.Listen = v.address() }},
		field{name: "admin", read: func(v value) { f.Admin = v.address() }},
		field{name: "tls", read: func(v value) { f.TLS.read(v) }},
		field{name: "upstream_tls", read: func(v value) { f.UpstreamTLS.read(v) }},
		field{name: "admin_token", read: func(v value) { f.AdminToken.read(v) }},
		field{name: "show_keys", read: func(v value) { f.ShowKeys = v.boolean() }},
		field{name: "trusted_proxies", read: func(v value) { trusted = &v }},
		field{name: "pepper", read: func(v value) { f.Pepper.read(v) }},
		field{name: "jwt", read: func(v value) { f.JWT.read(v) }},
		field{name: "store", read: func(v value) { f.Store.Kind = v.oneOf(Local, Redis) }},
		field{name: "redis", read: func(v value) { f.Store.read(v) }},
		field{name: "snapshot", read: func(v value) { f.Snapshot.read(v) }},
		field{name: "overload", read: func(v value) { f.Overload.read(v) }},
		field{name: "access_log", read: func(v value) { f.AccessLog = v.oneOf("text", "json", "off") }},
		field{name: "cors", read: func(v value) { f.CORS.read(v) }},
		field{name: "access", read: func(v value) { f.Access.read(v) }},
		field{name: "denial", read: func(v value) { f.Denial = readDenial(v) }},
		field{name: "timeouts", read: func(v value) { f.Timeouts.read(v) }},
		field{name: "limits", read: func(v value) { limits = &v }},
		field{name: "routes", read: func(v value) { routes = &v }},
		field{name: "domains", read: func(v value) { domains = &v }},
		field{name: "domain_headers", read: func(v value) { f.DomainHeaders = readHeaders(v) }},
		field{name: "envoy_files", read: func(v value) { f.readPatterns(v) }},
		field{name: "grpc", read: func(v value) { f.GRPC.read(v) }},
	)
	if !v.isMapping() {
		return
	}
	f.Trusted = readPrefixes(trusted)
	if f.Store.Kind == Redis && len(f.Store.Addresses) == 0 {
		value{v.r, v.node, "redis.addresses"}.fail("is missing, with store: redis")
	}
	if f.Store.Kind == Redis && f.Snapshot.File != "" {
		value{v.r, v.r.at["snapshot"], "snapshot"}.fail("is for store: local; Redis keeps debt by itself")
	}
	if _, port, _ := net.SplitHostPort(f.Listen); f.Listen == f.Admin && f.Listen != "" && port != "0" {
		v.fail("has one address for listen and admin, %s: clients must not reach admin", f.Listen)
	}
	b := newBook(f)
	f.Limits = b.readShared(limits)
	f.Routes = b.readRoutes(routes)
	f.Domains = b.readDomains(domains)
	if host, _, _ := net.SplitHostPort(f.Listen); trusted == nil && !isLoopback(host) {
		f.warnOfAddresses(v)
	}
	if routes == nil && domains == nil && len(f.EnvoyFiles) == 0 {
		v.fail("has neither routes nor domains")
	}
}

func (v value) address() string {
	s := v.expanded()
	if _, port, err := net.SplitHostPort(s); (err != nil || !validPort(port)) && s != "" {
		v.fail("is %q, want host:port", s)
	}
	return s
}

// validPort accepts numbers up to 65535, and names, which the system resolves.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 64)
	return errors.Is(err, strconv.ErrSyntax) && port != "" || err == nil && n <= math.MaxUint16
}

func readPrefixes(v *value) (all []netip.Prefix) {
	if v == nil {
		return nil
	}
	for _, item := range v.items() {
		if p, ok := readPrefix(item); ok {
			all = append(all, p)
		}
	}
	if err := checkTrust(all); err != nil {
		v.fail("%v", err)
	}
	return all
}

// readPrefix reads an address or a prefix.
func readPrefix(v value) (p netip.Prefix, ok bool) {
	s := v.text()
	p, err := netip.ParsePrefix(s)
	if addr, errAddr := netip.ParseAddr(s); errAddr == nil {
		p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if s != "" && err != nil {
		v.fail("is %q, want an address or a prefix such as 10.0.0.0/8", s)
	}
	return p, err == nil
}

func (o *Overload) read(v value) {
	if !v.isMapping() {
		o.Off = !v.boolean()
		return
	}
	v.fields(field{name: "max_in_flight", read: func(v value) { o.MaxInFlight = int(v.whole(1, 1<<30)) }})
}

// GRPC are settings of connections.
type GRPC struct {
	// MaxAge ends a connection after about so long, so that clients spread over new
	// instances; its calls have Grace to end. 0: never.
	MaxAge, Grace time.Duration
}

func (g *GRPC) read(v value) {
	v.fields(
		field{name: "max_connection_age", read: func(v value) { g.MaxAge = v.duration(time.Millisecond, 365*24*time.Hour) }},
		field{name: "max_connection_age_grace", read: func(v value) { g.Grace = v.duration(time.Millisecond, time.Hour) }},
	)
}

func (t *Timeouts) read(v value) {
	some := func(to *time.Duration) func(value) {
		return func(v value) { *to = v.duration(time.Millisecond, time.Hour) }
	}
	v.fields(
		field{name: "read_header", read: some(&t.ReadHeader)},
		field{name: "body", read: some(&t.Body)},
		field{name: "whole_body", read: some(&t.WholeBody)},
		field{name: "idle", read: some(&t.Idle)},
		field{name: "upstream", read: some(&t.Upstream)},
		field{name: "upstream_idle", read: some(&t.UpIdle)},
		field{name: "send", read: some(&t.Send)},
		field{name: "unready", read: func(v value) { t.Unready = v.duration(0, time.Hour) }},
		field{name: "drain", read: some(&t.Drain)},
	)
}
