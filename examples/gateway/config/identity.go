package config

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/sluice-go/sluice/keyfunc"
)

// Identity translates what operators call a caller into the key that its
// requests have: Parts says what the caller is called by, and Key takes as many
// values.
type Identity struct {
	Parts []string
	Key   func(values []string) (string, error)
}

// Everybody is the part of an identity that has nothing to ask for.
const Everybody = "everybody: leave empty"

// NewIdentity runs the key function of keys on a request with the values of an
// operator.
func NewIdentity(keys []Key, trusted []netip.Prefix, pepper []byte) (Identity, error) {
	f, err := KeyFunc(keys, trusted, pepper)
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
		r := &http.Request{Header: http.Header{}}
		for i, k := range asked {
			if err := k.write(r, values[i]); err != nil {
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

// part is what a key is asked for by, empty if there is nothing to ask for.
func (k Key) part() string {
	switch k.Kind {
	case "global":
		return ""
	case "ip":
		return "address"
	case "route":
		return "route"
	}
	return "header " + k.Name
}

// write gives a request the value that makes the key.
func (k Key) write(r *http.Request, value string) error {
	switch k.Kind {
	case "ip":
		addr, err := netip.ParseAddr(value)
		if p, errPrefix := netip.ParsePrefix(value); errPrefix == nil { // as the key of IPv6 is written
			addr, err = p.Addr(), nil
		}
		if err != nil {
			return fmt.Errorf("%q is not an address", value)
		}
		r.RemoteAddr = netip.AddrPortFrom(addr, 1).String()
	case "route":
		r.Pattern = value
	case "header", "secret":
		r.Header.Set(k.Name, value)
	}
	return nil
}
