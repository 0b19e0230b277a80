package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/programs/plan/accesslog"
)

// keyOf is the key of a record.
type keyOf = func(*accesslog.Record) (string, bool)

// parseKey reads the fields of a key, separated by commas; global is one key for all records.
func parseKey(text string, address keyOf) (keyOf, error) {
	var parts []keyOf
	for name := range strings.SplitSeq(text, ",") {
		switch name = strings.TrimSpace(name); name {
		case "":
			return nil, fmt.Errorf("-key is %q, want fields separated by commas, such as address or user,path", text)
		case "address":
			parts = append(parts, address)
		case "global":
			parts = append(parts, func(*accesslog.Record) (string, bool) { return "", true })
		default:
			parts = append(parts, func(r *accesslog.Record) (string, bool) { return r.Get(name) })
		}
	}
	return joined(parts), nil
}

// joined is the key of all parts together.
func joined(parts []keyOf) keyOf {
	if len(parts) == 1 {
		return parts[0]
	}
	return func(r *accesslog.Record) (string, bool) {
		values := make([]string, len(parts))
		for i, part := range parts {
			value, ok := part(r)
			if !ok {
				return "", false
			}
			if values[i] = value; strings.ContainsAny(value, ` "`) {
				values[i] = strconv.Quote(value)
			}
		}
		return strings.Join(values, " "), true
	}
}

// proxies counts records of trusted proxies without a forwarded address that can be read.
type proxies struct{ silent atomic.Int64 }

// addressKey makes the key of the client's address as [keyfunc.IPConfig] does.
func addressKey(c keyfunc.IPConfig, seen *proxies) (keyOf, error) {
	key, err := c.HTTP()
	if err != nil {
		return nil, err
	}
	var known sync.Map // of addresses of the connection
	var size atomic.Int64
	return func(r *accesslog.Record) (string, bool) {
		text, ok := r.Get("address")
		if value, seen := known.Load(text); seen {
			return value.(string), true
		}
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return text, ok // "unix:", or a key that another limiter has written
		}
		request, forwards := http.Request{RemoteAddr: net.JoinHostPort(text, "0")}, false
		if len(c.Trusted) > 0 {
			var forwarded string
			if forwarded, forwards = r.Get("forwarded"); forwards {
				request.Header = http.Header{"X-Forwarded-For": {forwarded}}
			}
		}
		value, err := key(&request)
		if through := err == nil && slices.ContainsFunc(c.Trusted, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) }); through && !forwards {
			seen.silent.Add(1)
		}
		if err == nil && len(c.Trusted) == 0 && size.Add(1) <= mostKnown {
			known.Store(strings.Clone(text), strings.Clone(value))
		}
		return value, err == nil
	}, nil
}

// costOf reads the cost of a record from a field; decimals are rounded up.
func costOf(field string) func(*accesslog.Record) (int64, error) {
	if field == "" {
		return nil
	}
	return func(r *accesslog.Record) (int64, error) {
		text, ok := r.Get(field)
		if !ok {
			return 0, fmt.Errorf("no field %s, which has the cost", field)
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0 && n < 1<<62) {
			return 0, fmt.Errorf("%s is %q, want a cost of 0 or more", field, text)
		}
		return int64(math.Ceil(n)), nil
	}
}

// condition is one -where.
type condition func(*accesslog.Record) bool

// parseWhere reads FIELD=VALUE, FIELD!=VALUE, FIELD~REGEXP or FIELD!~REGEXP.
func parseWhere(text string) (field string, holds condition, err error) {
	i := strings.IndexAny(text, "=~!")
	if i <= 0 {
		return "", nil, errors.New("want FIELD=VALUE, FIELD!=VALUE, FIELD~REGEXP or FIELD!~REGEXP")
	}
	field, rest := strings.TrimSpace(text[:i]), text[i:]
	rest, not := strings.CutPrefix(rest, "!")
	if value, ok := strings.CutPrefix(rest, "="); ok {
		return field, func(r *accesslog.Record) bool {
			got, _ := r.Get(field)
			return (got == value) != not
		}, nil
	}
	pattern, ok := strings.CutPrefix(rest, "~")
	if !ok {
		return "", nil, errors.New("want =, !=, ~ or !~ after the field")
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return "", nil, err
	}
	return field, func(r *accesslog.Record) bool {
		got, _ := r.Get(field)
		return expression.MatchString(got) != not
	}, nil
}

// all is the condition that all hold, nil if there are none.
func all(conditions []condition) condition {
	if len(conditions) == 0 {
		return nil
	}
	return func(r *accesslog.Record) bool {
		for _, c := range conditions {
			if !c(r) {
				return false
			}
		}
		return true
	}
}
