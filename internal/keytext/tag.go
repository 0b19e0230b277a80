package keytext

import "strings"

// Tag is a kind of keys that are not an identity unchanged: they begin with the name of the
// kind. After it comes nothing; ':' and a text; or '#' and the digest of a text, so that no text
// is written like the digest of another. [Joined] is followed by '/' and the parts.
type Tag uint8

// The tags.
const (
	Missing   Tag = iota // no identity
	Unix                 // a client on a Unix socket
	Unmatched            // no route
	Hop                  // an unreadable address behind this proxy
	Routed               // a route that could be the name of a user
	Valued               // an identity that is written like another key
	Secret               // a credential
	URI                  // of a certificate, as the next three
	DNS
	Email
	IP
	Joined // several keys
)

// tags is the grammar of the keys: how those of each kind begin, and the class of their
// identity, which a denial names in place of the key.
var tags = [...]struct{ name, class string }{
	Missing:   {"~missing", unidentified},
	Unix:      {"~unix", address},
	Unmatched: {"~unmatched", caller},
	Hop:       {"~hop", address},
	Routed:    {"~route", caller},
	Valued:    {"~value", caller},
	Secret:    {"~secret", "secret"},
	URI:       {"~uri", certificate},
	DNS:       {"~dns", certificate},
	Email:     {"~email", certificate},
	IP:        {"~ip", certificate},
	Joined:    {"~join", "combined"},
}

const (
	unidentified = "unidentified"
	address      = "address"
	caller       = "caller"
	certificate  = "certificate"
	global       = "global"
	method       = "method"
)

// Classes are all classes of keys.
var Classes = []string{global, address, method, certificate, "secret", "combined", unidentified, caller}

// Key is the key of the kind that has no text.
func (t Tag) Key() string { return tags[t].name }

// With puts the tag before a text that is a key, or a part of one, already.
func (t Tag) With(text string) string { return tags[t].name + ":" + text }

// of puts the tag before a value from outside.
func (t Tag) of(v string) string {
	if plain(v) {
		return t.With(v)
	}
	return tags[t].name + "#" + digest(v)
}

// ClassOf is the class of a key. A key that no function of package keyfunc has written is a
// caller, unless it looks like one of theirs.
func ClassOf(key string) string {
	switch {
	case key == "":
		return global
	case key[0] == '~':
		name := key
		if end := strings.IndexAny(key, ":#/"); end > 0 {
			name = key[:end]
		}
		for _, t := range tags {
			if t.name == name {
				return t.class
			}
		}
	case key[0] == '/':
		return method
	case isAddress(key):
		return address
	}
	return caller
}
