// Package accesslog reads the access logs of servers: the combined format of nginx and Apache, JSON
// lines, the text of slog, and CSV. Records come in the order of the lines, which is mostly that of the
// requests' ends.
package accesslog

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record is a line of a log. Its values are valid until the next line.
type Record struct {
	// Arrival is when the request began: its time in the log, less its duration where the
	// server writes the line at the end.
	Arrival  time.Time
	Duration time.Duration // 0: the log does not say
	// WholeSecond reports that the time of the line has no fraction of a second.
	WholeSecond bool

	line   line
	config *Config
	found  map[string]string // the log's own name of a common one
}

// line is a parsed line of one format.
type line interface {
	parse(text string) error
	// get returns the value of a field by the log's own name.
	get(name string) (string, bool)
	// fields are the names of the fields of the line.
	fields() []string
}

// names are the fields that have a common name, with the names that servers give them.
var names = map[string][]string{
	"time":      {"msec", "StartUTC", "start_time", "ts", "time", "timestamp", "@timestamp", "time_iso8601", "time_local", "datetime", "date"},
	"duration":  {"request_time", "Duration", "seconds", "duration", "duration_ms", "latency_ms", "elapsed_ms", "took_ms"},
	"address":   {"request.client_ip", "request.remote_ip", "ClientHost", "downstream_remote_address", "remote_addr", "remote_ip", "client_ip", "client", "clientip", "peer", "ip", "address"},
	"user":      {"user_id", "ClientUsername", "remote_user", "user", "username", "sub", "account"},
	"method":    {"request.method", "RequestMethod", "method", "request_method", ":method"},
	"target":    {"request.uri", "RequestPath", "request_uri", "uri", "path", "url", "target", "x-envoy-origin-path", ":path"},
	"host":      {"request.host", "RequestHost", "authority", "host", ":authority"},
	"status":    {"status", "DownstreamStatus", "response_code", "code"},
	"bytes":     {"size", "DownstreamContentSize", "bytes_sent", "body_bytes_sent", "bytes"},
	"route":     {"RouterName", "route", "route_name"},
	"forwarded": {"request.headers.X-Forwarded-For", "request_X-Forwarded-For", "x_forwarded_for", "x-forwarded-for", "http_x_forwarded_for", "forwarded"},
}

// Get returns a field: one with a common name (address, user, method, path, query, host, status, bytes,
// route, forwarded), a header as "header:X-Api-Key", a parameter of the query as "query:q", or one
// by the log's own name. An empty value, and "-", is none.
func (r *Record) Get(name string) (string, bool) {
	kind, of, _ := strings.Cut(name, ":")
	switch kind {
	case "path", "query":
		target, ok := r.lookup("target")
		path, query, _ := strings.Cut(target, "?")
		switch {
		case kind == "path":
			return path, ok && path != ""
		case of == "":
			return query, ok && query != ""
		}
		values, _ := url.ParseQuery(query) // what can be read of it
		return values.Get(of), values.Get(of) != ""
	case "header":
		return r.header(of)
	case "address":
		text, ok := r.lookup(name)
		return withoutPort(text), ok
	}
	return r.lookup(name)
}

// Has reports whether the line has a field, by any name that [Record.Get] takes; "-" counts by the log's own.
func (r *Record) Has(name string) bool {
	_, has := r.Get(name)
	value, _ := r.line.get(name)
	return has || value != ""
}

// lookup returns a field by a common name, or by the log's own.
func (r *Record) lookup(name string) (string, bool) {
	if _, common := names[name]; common {
		_, value, ok := r.find(name)
		return value, ok
	}
	if own, set := r.config.Fields[name]; set {
		name = own
	}
	return present(r.line.get(name))
}

func (r *Record) header(name string) (string, bool) {
	canonical, lower := http.CanonicalHeaderKey(name), strings.ToLower(name)
	if own, set := r.config.Fields["header:"+canonical]; set {
		return present(r.line.get(own))
	}
	plain := strings.ReplaceAll(lower, "-", "_")
	for _, own := range []string{"request.headers." + canonical, "request_" + canonical, "http_" + plain, "headers." + canonical, "headers." + lower, name, canonical, lower, plain} {
		if value, ok := present(r.line.get(own)); ok {
			return value, true
		}
	}
	return "", false
}

// present drops the signs of servers for no value.
func present(value string, ok bool) (string, bool) {
	if value == "-" {
		value = ""
	}
	return value, ok && value != ""
}

// Fields are the fields of the line, common names first.
func (r *Record) Fields() []string {
	var common []string
	for name := range names {
		if _, ok := r.lookup(name); ok && name != "target" {
			common = append(common, name)
		}
	}
	if _, ok := r.lookup("target"); ok {
		common = append(common, "path")
	}
	slices.Sort(common)
	own := r.line.fields()
	return append(common, slices.DeleteFunc(own, func(n string) bool { return slices.Contains(common, n) })...)
}

// List writes names of fields for a message; those that a terminal could obey are quoted.
func List(fields []string) string {
	var b strings.Builder
	for i, f := range fields {
		if i > 0 {
			b.WriteString(", ")
		}
		if q := strconv.Quote(f); len(q) != len(f)+2 {
			f = q
		}
		b.WriteString(f)
	}
	return b.String()
}

// withoutPort drops the port of an address.
func withoutPort(text string) string {
	if _, err := netip.ParseAddr(text); err == nil {
		return text
	}
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().String()
	}
	return text
}

// read parses a line.
func (r *Record) read(text string) error {
	if err := r.line.parse(text); err != nil {
		return err
	}
	name, value, ok := r.find("time")
	if !ok {
		return fmt.Errorf("no time; it has the fields %s", List(r.line.fields()))
	}
	at, err := parseTime(value)
	if err != nil {
		return err
	}
	r.Arrival, r.Duration, r.WholeSecond = at, 0, at.Nanosecond() == 0
	field, value, ok := r.find("duration")
	if !ok {
		return nil
	}
	if r.Duration, err = r.duration(field, value); err != nil {
		return fmt.Errorf("%s is %q: %w", field, value, err)
	}
	if !r.config.TimeIsArrival && name != "StartUTC" && name != "start_time" && !r.envoy() && !r.apache(value) {
		r.Arrival = at.Add(-r.Duration)
	}
	return nil
}

// find returns a field by a common name, and the name that the log has for it: the one of the line before, or
// the first that the line has.
func (r *Record) find(name string) (own, value string, ok bool) {
	if own, set := r.config.Fields[name]; set {
		value, ok = present(r.line.get(own))
		return own, value, ok
	}
	last := r.found[name]
	if last != "" {
		if value, ok := present(r.line.get(last)); ok {
			return last, value, true
		}
	}
	for _, own := range names[name] {
		if value, ok := present(r.line.get(own)); ok {
			if own != last {
				r.found[name] = own
			}
			return own, value, true
		}
	}
	return "", "", false
}

// envoy reports whether Envoy wrote the line: its durations are in ms, and its times are the arrival.
func (r *Record) envoy() bool {
	_, flags := r.line.get("response_flags")
	return flags
}

// apache reports whether a server other than nginx wrote the line in the common format, by a duration without
// a decimal point: then its time is the arrival.
func (r *Record) apache(duration string) bool {
	_, common := r.line.(*combined)
	return common && !strings.Contains(duration, ".")
}

// duration reads a duration with a unit, or in the unit of the field.
func (r *Record) duration(field, value string) (time.Duration, error) {
	unit := float64(time.Second)
	switch {
	case r.config.DurationUnit != 0:
		unit = float64(r.config.DurationUnit)
	case field == "Duration": // Traefik
		unit = 1
	case strings.HasSuffix(field, "_ms"):
		unit = float64(time.Millisecond)
	case field == "duration":
		if r.envoy() {
			unit = float64(time.Millisecond)
		} else if _, slog := r.line.get("msg"); slog && !strings.ContainsAny(value, ".e") {
			unit = 1
		}
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil {
		d, err := time.ParseDuration(value)
		if err != nil {
			return 0, errors.New("want a duration")
		}
		return max(d, 0), nil
	}
	if r.apache(value) && r.config.DurationUnit == 0 {
		return 0, errors.New("give its unit by -duration-unit: us of %D, s of %T")
	}
	if !(n >= 0 && n*unit < 1<<62) {
		return 0, errors.New("out of range")
	}
	return time.Duration(n * unit), nil
}
