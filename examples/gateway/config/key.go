package config

import (
	"net/netip"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/sluice-go/sluice/keyfunc"
)

// Key is whose a request is, in one respect.
type Key struct {
	Kind string // ip, route, global, header or secret
	Name string // of the header
}

// String writes the key as the file does.
func (k Key) String() string {
	if k.Name == "" {
		return k.Kind
	}
	return k.Kind + ":" + k.Name
}

// readKeys reads one key or a list of them, which are joined.
func readKeys(v value) (keys []Key) {
	if !v.isSequence() {
		return append(keys, readKey(v))
	}
	for _, item := range v.items() {
		keys = append(keys, readKey(item))
	}
	if len(keys) == 0 {
		v.fail("is an empty list")
	}
	return keys
}

func readKey(v value) Key {
	const want = "want ip, route, global, header:NAME, secret:NAME, or a list of them"
	s := v.text()
	kind, name, named := strings.Cut(s, ":")
	k := Key{kind, strings.TrimSpace(name)}
	switch kind {
	case "ip", "route", "global":
		if named {
			v.fail("is %q, %s", s, want)
		}
	case "header", "secret":
		switch {
		case !httpguts.ValidHeaderFieldName(k.Name):
			v.fail("is %q, %q is not the name of a header", s, k.Name)
		case strings.EqualFold(k.Name, "Host"):
			v.fail("is %q, and Host is not among the headers", s)
		}
	default:
		if s != "" {
			v.fail("is %q, %s", s, want)
		}
	}
	return k
}

// checkTrust finds out whether the prefixes may be trusted.
func checkTrust(trusted []netip.Prefix) error {
	_, err := keyfunc.IPConfig{Trusted: trusted}.HTTP()
	return err
}

// KeyFunc is the key function of keys, joined if there are several.
func KeyFunc(keys []Key, trusted []netip.Prefix, pepper []byte) (keyfunc.HTTP, error) {
	parts := make([]keyfunc.HTTP, len(keys))
	for i, k := range keys {
		switch k.Kind {
		case "ip":
			f, err := keyfunc.IPConfig{Trusted: trusted}.HTTP()
			if err != nil {
				return nil, err
			}
			parts[i] = f
		case "route":
			parts[i] = keyfunc.Route()
		case "global":
			parts[i] = keyfunc.Global()
		case "header":
			parts[i] = keyfunc.Header(k.Name)
		case "secret":
			parts[i] = keyfunc.Secret(k.Name, pepper)
		}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return keyfunc.Join(parts...), nil
}
