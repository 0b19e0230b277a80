package httpmw

import (
	"strconv"
	"strings"
)

// limitItem is what a member of a RateLimit field says. The remaining quota is
// -1 if it is not told.
type limitItem struct{ remaining, after int64 }

// mostField is how much of a field is read.
const mostField = 4096

// parseLimits parses a RateLimit field as a list of strings with parameters
// (RFC 9651 section 4.2). A field that is not one says nothing: a part of it
// may say the opposite of the whole.
func parseLimits(field string) []limitItem {
	if len(field) > mostField {
		return nil
	}
	var items []limitItem
	p := parser{rest: strings.Trim(field, " ")}
	for p.rest != "" {
		item, ok := p.item()
		if !ok {
			return nil
		}
		items = append(items, item)
		p.skip(" \t")
		if p.rest == "" {
			return items
		}
		if !p.take(',') {
			return nil
		}
		p.skip(" \t")
		if p.rest == "" { // a trailing comma
			return nil
		}
	}
	return items
}

// parser consumes rest from the left.
type parser struct{ rest string }

func (p *parser) skip(set string) { p.rest = strings.TrimLeft(p.rest, set) }

func (p *parser) take(c byte) bool {
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// span takes what consists of characters that are in set.
func (p *parser) span(in func(c byte) bool) string {
	i := 0
	for i < len(p.rest) && in(p.rest[i]) {
		i++
	}
	s := p.rest[:i]
	p.rest = p.rest[i:]
	return s
}

// item takes a string and its parameters. Of a parameter that comes twice the
// last counts.
func (p *parser) item() (item limitItem, ok bool) {
	item.remaining = -1
	if !p.quoted() {
		return item, false
	}
	for p.take(';') {
		p.skip(" ")
		key := p.span(isKey)
		if key == "" || key[0] >= '0' && key[0] <= '9' || key[0] == '-' || key[0] == '.' || key[0] == '_' {
			return item, false
		}
		n, whole := int64(0), false
		if p.take('=') {
			if n, whole, ok = p.bare(); !ok {
				return item, false
			}
		}
		switch {
		case key == "r" && whole:
			item.remaining = max(n, 0)
		case key == "r":
			item.remaining = -1
		case key == "t":
			item.after = max(n, 0)
		}
	}
	return item, true
}

// quoted takes a string.
func (p *parser) quoted() bool {
	if !p.take('"') {
		return false
	}
	for p.rest != "" {
		c := p.rest[0]
		p.rest = p.rest[1:]
		switch {
		case c == '"':
			return true
		case c == '\\':
			if !p.take('"') && !p.take('\\') {
				return false
			}
		case c < 0x20 || c > 0x7e:
			return false
		}
	}
	return false
}

// bare takes the value of a parameter; whole tells that it is an integer.
func (p *parser) bare() (n int64, whole, ok bool) {
	if p.rest == "" {
		return 0, false, false
	}
	switch c := p.rest[0]; {
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == '"':
		return 0, false, p.quoted()
	case c == ':':
		p.take(':')
		p.span(func(c byte) bool { return isToken(c) && c != ':' || c == '=' })
		return 0, false, p.take(':')
	case c == '?':
		p.take('?')
		return 0, false, p.take('0') || p.take('1')
	case c == '@':
		p.take('@')
		_, whole, ok = p.number()
		return 0, false, whole && ok
	case c == '%':
		p.take('%')
		return 0, false, p.quoted()
	case c == '*' || 'a' <= c|0x20 && c|0x20 <= 'z':
		p.span(isToken)
		return 0, false, true
	}
	return 0, false, false
}

// number takes an integer of up to 15 digits, or a decimal.
func (p *parser) number() (n int64, whole, ok bool) {
	text := p.span(func(c byte) bool { return c == '-' || c == '.' || '0' <= c && c <= '9' })
	if strings.ContainsRune(text, '.') {
		_, err := strconv.ParseFloat(text, 64)
		return 0, false, err == nil
	}
	if len(strings.TrimPrefix(text, "-")) > 15 {
		return 0, false, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, true, err == nil
}

func isKey(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("_-.*", c) >= 0
}

func isToken(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0
}
