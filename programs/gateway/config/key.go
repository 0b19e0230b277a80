package config

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/sluice-go/sluice/keyfunc"
)

// Key is whose a request is, in one respect.
type Key struct {
	Kind string
	Name string // of the header, cookie, parameter, part of the path or claim
}

// keyKinds are the kinds of keys and whether they have a name.
var keyKinds = map[string]bool{
	"ip": false, "route": false, "global": false, "method": false,
	"header": true, "secret": true, "cookie": true, "query": true, "path": true, "jwt": true,
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
	s := v.text()
	kind, name, named := strings.Cut(s, ":")
	k := Key{kind, strings.TrimSpace(name)}
	hasName, known := keyKinds[kind]
	switch {
	case s == "":
	case !known || named != hasName:
		v.fail("is %q, want ip, route, method, global, header:NAME, secret:NAME, cookie:NAME, query:NAME, path:NAME, jwt:CLAIM, or a list of them", s)
	case hasName:
		k.check(v)
	}
	return k
}

// check looks at the name of a key.
func (k Key) check(v value) {
	header := k.Kind == "header" || k.Kind == "secret"
	switch {
	case k.Name == "":
		v.fail("is %q, which has no name after the colon", k.String()+":")
	case header && !httpguts.ValidHeaderFieldName(k.Name):
		v.fail("is %q, %q is not the name of a header", k, k.Name)
	case header && strings.EqualFold(k.Name, "Host"):
		v.fail("is %q, and Host is not among the headers", k)
	case k.Kind == "cookie" && !httpguts.ValidHeaderFieldName(k.Name): // both are tokens
		v.fail("is %q, %q is not the name of a cookie", k, k.Name)
	}
}

// HasKind reports whether one of the keys is of a kind.
func HasKind(keys []Key, kind string) bool {
	return slices.ContainsFunc(keys, func(k Key) bool { return k.Kind == kind })
}

// checkTrust finds out whether the prefixes may be trusted.
func checkTrust(trusted []netip.Prefix) error {
	_, err := keyfunc.IPConfig{Trusted: trusted}.HTTP()
	return err
}

// Callers has the settings that are needed to find the key of a request.
type Callers struct {
	Trusted []netip.Prefix
	Pepper  []byte
	Tokens  *Tokens // nil: the file has no jwt
}

// KeyFunc is the key function of keys, joined if there are several.
func (c Callers) KeyFunc(keys []Key) (keyfunc.HTTP, error) {
	parts := make([]keyfunc.HTTP, len(keys))
	for i, k := range keys {
		f, err := c.part(k)
		if err != nil {
			return nil, err
		}
		parts[i] = f
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return keyfunc.Join(parts...), nil
}

func (c Callers) part(k Key) (keyfunc.HTTP, error) {
	switch k.Kind {
	case "ip":
		return keyfunc.IPConfig{Trusted: c.Trusted}.HTTP()
	case "route":
		return keyfunc.Route(), nil
	case "global":
		return keyfunc.Global(), nil
	case "header":
		return keyfunc.Header(k.Name), nil
	case "secret":
		return keyfunc.Secret(k.Name, c.Pepper), nil
	case "method":
		return identity(func(r *http.Request) string { return r.Method }), nil
	case "cookie":
		return identity(func(r *http.Request) string { return onlyCookie(r, k.Name) }), nil
	case "query":
		return identity(func(r *http.Request) string { return onlyParameter(r, k.Name) }), nil
	case "path":
		return identity(func(r *http.Request) string { return r.PathValue(k.Name) }), nil
	}
	return identity(func(r *http.Request) string { return c.Tokens.claim(r, k.Name) }), nil
}

// identity makes a key from the result of get on a request.
func identity(get func(*http.Request) string) keyfunc.HTTP {
	return func(r *http.Request) (string, error) {
		if key := keyfunc.Identity(get(r)); key != "" {
			return key, nil
		}
		return "", keyfunc.ErrNoKey
	}
}

// onlyCookie is the value of a cookie that is there once: of two, this server and the
// upstream may read different ones. Those that net/http skips as malformed count, and a
// comma separates cookies too, as it does for some servers.
func onlyCookie(r *http.Request, name string) string {
	found := 0
	for _, line := range r.Header["Cookie"] {
		for _, one := range strings.FieldsFunc(line, func(c rune) bool { return c == ';' || c == ',' }) {
			if its, _, _ := strings.Cut(one, "="); strings.TrimSpace(its) == name {
				found++
			}
		}
	}
	if all := r.CookiesNamed(name); found == 1 && len(all) == 1 {
		return all[0].Value
	}
	return ""
}

// onlyParameter is the value of a parameter of the query that is there once.
func onlyParameter(r *http.Request, name string) string {
	if all := r.URL.Query()[name]; len(all) == 1 {
		return all[0]
	}
	return ""
}
