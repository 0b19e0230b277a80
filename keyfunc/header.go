package keyfunc

import (
	"net/http"
)

// Header is the value of a request header. The client chooses it, so by
// itself it limits nobody: use it where something in front of this server
// sets the header or checks it. For credentials use [Secret], for addresses
// [ClientIPHeader].
//
// Values up to 128 bytes are the key as they stand. Longer ones, up to
// 128 KiB, are hashed: "~value#" and 32 hexadecimal digits of SHA-256. They
// are not cut off, since all values with the same beginning would then share
// a key. So are values with unprintable characters. A value that could be
// mistaken for an address, a route or a method is written "~value:" and the
// value.
//
// An absent or empty header, one longer than 128 KiB, and one that comes in
// several lines, of which this server and others may each believe a different
// one, are [ErrNoKey].
//
// It panics if name is not a header name, and for Host, which net/http does
// not keep among the headers; see the function [Host].
func Header(name string) HTTP {
	requireHeader("Header", name)
	name = http.CanonicalHeaderKey(name)
	err := noKey("header %q is absent, repeated or too long", name)
	return func(r *http.Request) (string, error) {
		if v, ok := single(r.Header[name]); ok {
			if key, ok := identity(v); ok {
				return key, nil
			}
		}
		return "", err
	}
}

// single is the only element of values.
func single(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// requireHeader panics unless name is the name of a header that net/http
// keeps among the headers.
func requireHeader(constructor, name string) {
	problem := headerProblem(name)
	require(problem == "", constructor, "the header name "+problem)
}

// headerProblem says what is wrong with a header name (RFC 9110 section 5.1).
func headerProblem(name string) string {
	switch {
	case name == "":
		return "is empty"
	case tokenLen(name) < len(name):
		return "has a character that header names cannot have"
	case http.CanonicalHeaderKey(name) == "Host":
		return "is Host, which net/http keeps apart from the headers: use keyfunc.Host"
	}
	return ""
}
