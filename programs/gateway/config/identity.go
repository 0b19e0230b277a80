package config

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/sluice-go/sluice/keyfunc"
)

// Identity translates the operators' name for a caller into the key of its
// requests: Parts are the labels of the values that make the name, and Key
// takes as many values.
type Identity struct {
	Parts []string
	Key   func(values []string) (string, error)
}

// Everybody is the part of an identity that has nothing to ask for.
const Everybody = "everybody: leave empty"

// Identity runs the key function of keys on a request with the values of an
// operator.
func (c Callers) Identity(keys []Key) (Identity, error) {
	f, err := c.KeyFunc(keys)
	if err != nil {
		return Identity{}, err
	}
	var asked []Key
	id := Identity{}
	for _, k := range keys {
		if part := k.part(); part != "" {
			asked, id.Parts = append(asked, k), append(id.Parts, part)
		}
	}
	if len(asked) == 0 {
		id.Parts = []string{Everybody}
	}
	id.Key = func(values []string) (string, error) {
		claims := map[string]string{}
		r := (&http.Request{Header: http.Header{}, URL: &url.URL{}}).WithContext(context.WithValue(context.Background(), givenClaims{}, claims))
		for i, k := range asked {
			if err := k.write(r, claims, values[i]); err != nil {
				return "", err
			}
		}
		return keyOf(f, r)
	}
	return id, nil
}

func keyOf(f keyfunc.HTTP, r *http.Request) (string, error) {
	key, err := f(r)
	if err != nil {
		return "", fmt.Errorf("no request with these values has a key")
	}
	return key, nil
}

// part is the name that a key is read by, empty if there is none.
func (k Key) part() string {
	switch k.Kind {
	case "global":
		return ""
	case "ip":
		return "address"
	case "route", "method":
		return k.Kind
	case "secret":
		return "header " + k.Name
	case "jwt":
		return "claim " + k.Name
	}
	return k.Kind + " " + k.Name
}

// write gives a request the value that makes the key.
func (k Key) write(r *http.Request, claims map[string]string, value string) error {
	switch k.Kind {
	case "ip":
		return writeAddress(r, value)
	case "route":
		r.Pattern = value
	case "method":
		r.Method = value
	case "header", "secret":
		r.Header.Set(k.Name, value)
	case "cookie":
		r.Header.Add("Cookie", k.Name+"="+value)
	case "query":
		q := r.URL.Query()
		q.Set(k.Name, value)
		r.URL.RawQuery = q.Encode()
	case "path":
		r.SetPathValue(k.Name, value)
	case "jwt":
		claims[k.Name] = value
	}
	return nil
}

func writeAddress(r *http.Request, value string) error {
	addr, err := netip.ParseAddr(value)
	if p, errPrefix := netip.ParsePrefix(value); errPrefix == nil { // as the key of IPv6 is written
		addr, err = p.Addr(), nil
	}
	if err != nil {
		return fmt.Errorf("%q is not an address", value)
	}
	r.RemoteAddr = netip.AddrPortFrom(addr, 1).String()
	return nil
}
