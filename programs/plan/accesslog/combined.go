package accesslog

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// combined is the common and the combined format of Apache and nginx, with the virtual host before it or
// not, and with further fields after it, which are called extra1, extra2 and so on.
type combined struct {
	values [len(combinedFields)]string
	extras []string
}

var combinedFields = [...]string{"remote_addr", "ident", "remote_user", "time_local", "request", "method", "target", "proto", "status", "bytes", "referer", "agent", "host"}

// The places of some of them.
const (
	addressField = iota
	identField
	userField
	timeField
	requestField
	methodField
	targetField
	protoField
	statusField
	bytesField
	refererField
	agentField
	hostField
)

func (c *combined) parse(text string) error {
	c.values, c.extras = [len(combinedFields)]string{}, c.extras[:0]
	head, rest, ok := strings.Cut(text, " [")
	if !ok {
		return errors.New("no time in [brackets], want the combined format")
	}
	at, rest, ok := strings.Cut(rest, "] ")
	if !ok {
		return errors.New("the time has no closing bracket")
	}
	if err := c.head(head); err != nil {
		return err
	}
	c.values[timeField] = at
	request, rest, err := token(rest)
	if err != nil {
		return err
	}
	for field := statusField; field <= agentField; field++ {
		if c.values[field], rest, err = token(rest); err != nil {
			return err
		}
	}
	if s := c.values[statusField]; len(s) != 3 {
		return errors.New("status is " + strconv.Quote(s) + ", want three digits")
	}
	for rest != "" {
		var value string
		if value, rest, err = token(rest); err != nil {
			return err
		}
		c.extras = append(c.extras, value)
	}
	c.request(request)
	return nil
}

// head reads the fields before the time.
func (c *combined) head(head string) error {
	first, rest, ok := strings.Cut(head, " ")
	if before, after, more := strings.Cut(rest, " "); more && strings.Contains(after, " ") {
		if _, err := netip.ParseAddr(before); err == nil && strings.Contains(first, ":") { // a virtual host
			c.values[hostField] = first
			first, rest = before, after
		}
	}
	ident, user, more := strings.Cut(rest, " ")
	if !ok || !more {
		return errors.New("fewer than three fields before the time")
	}
	c.values[addressField], c.values[identField], c.values[userField] = first, ident, user
	return nil
}

// request reads "GET /path HTTP/1.1". A request that the server could not read is kept as it is.
func (c *combined) request(request string) {
	method, rest, ok := strings.Cut(request, " ")
	target, proto, _ := strings.Cut(rest, " ")
	if i := strings.LastIndexByte(rest, ' '); i >= 0 {
		target, proto = rest[:i], rest[i+1:]
	}
	if ok {
		c.values[methodField], c.values[targetField], c.values[protoField] = method, target, proto
	}
	c.values[requestField] = request
}

func (c *combined) get(name string) (string, bool) {
	if n, extra := strings.CutPrefix(name, "extra"); extra {
		if i, err := strconv.Atoi(n); err == nil && i >= 1 && i <= len(c.extras) {
			return unescape(c.extras[i-1]), true
		}
	}
	switch name { // as headers
	case "Referer":
		name = "referer"
	case "User-Agent":
		name = "agent"
	}
	for i, field := range &combinedFields {
		if field == name {
			return unescape(c.values[i]), true
		}
	}
	return "", false
}

func (c *combined) fields() (all []string) {
	for i, value := range &c.values {
		if value != "" && value != "-" {
			all = append(all, combinedFields[i])
		}
	}
	for i := range c.extras {
		all = append(all, "extra"+strconv.Itoa(i+1))
	}
	return all
}

// token cuts off the next value, in quotes or not.
func token(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, " ")
		return value, rest, nil
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return s[1:i], strings.TrimPrefix(s[i+1:], " "), nil
		}
	}
	return "", "", errors.New("a quote is not closed: the line is cut off")
}

// unescape reads \x22 of nginx, and \" and \\ of Apache.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if s[i] == 'x' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
