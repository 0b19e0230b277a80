package client

import "strings"

// structured reads a structured field (RFC 9651) from the front of its text. It does not know
// display strings, which the RateLimit fields do not use.
type structured string

// parameters are the integer parameters of a member; parameters of other types are left
// out.
type parameters map[string]int64

// items reads a list of strings, tokens and integers with their parameters, and calls each for every
// member, of which an integer is the parameter q. It is false if the list is not well-formed, or has a
// member of another type.
func (s structured) items(each func(parameters)) bool {
	return s.list(func() bool {
		named := strings.ContainsRune(`"*`+lower+upper, rune(s[0]))
		n, integer, ok := s.value()
		if !ok || !named && !integer {
			return false
		}
		params, ok := s.parameters()
		if integer && ok {
			params["q"] = n
		}
		if ok {
			each(params)
		}
		return ok
	})
}

// dictionary reads the members of a dictionary that are integers, without their parameters. It is
// false if the dictionary is not well-formed, or has an inner list.
func (s structured) dictionary() (all parameters, well bool) {
	all = parameters{}
	well = s.list(func() bool {
		if !s.pair(all) {
			return false
		}
		_, ok := s.parameters()
		return ok
	})
	return all, well
}

// list reads members between commas. s is not empty when member is called.
func (s *structured) list(member func() bool) bool {
	s.skip(" ")
	for *s != "" {
		if !member() {
			return false
		}
		if s.skip(" \t"); *s == "" {
			return true
		}
		if !s.take(',') {
			return false
		}
		if s.skip(" \t"); *s == "" {
			return false // a comma at the end
		}
	}
	return true
}

// parameters reads ;key=value and ;key, as often as they come.
func (s *structured) parameters() (params parameters, ok bool) {
	params = parameters{}
	for s.take(';') {
		if s.skip(" "); !s.pair(params) {
			return nil, false
		}
	}
	return params, true
}

// pair reads key=value or key into all, where the last of several counts.
func (s *structured) pair(all parameters) bool {
	key := s.run(lower + digits + "_-.*")
	if key == "" || !strings.ContainsRune(lower+"*", rune(key[0])) {
		return false
	}
	delete(all, key)
	if !s.take('=') {
		return true
	}
	n, integer, ok := s.value()
	if integer {
		all[key] = n
	}
	return ok
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
)

// value reads a bare item.
func (s *structured) value() (n int64, integer, ok bool) {
	switch {
	case *s == "":
		return 0, false, false
	case (*s)[0] == '"':
		return 0, false, s.text()
	case s.take('?'):
		return 0, false, s.take('0') || s.take('1')
	case s.take(':'):
		s.run(lower + upper + digits + "+/=")
		return 0, false, s.take(':')
	case s.take('@'):
		_, date, ok := s.number()
		return 0, false, date && ok
	case strings.ContainsRune(lower+upper+"*", rune((*s)[0])):
		s.run(lower + upper + digits + "!#$%&'*+-.^_`|~:/")
		return 0, false, true
	}
	return s.number()
}

// number reads an integer of at most 15 digits, or a decimal of at most 12 and 3.
func (s *structured) number() (n int64, integer, ok bool) {
	negative := s.take('-')
	whole := s.run(digits)
	if s.take('.') {
		part := s.run(digits)
		return 0, false, whole != "" && len(whole) <= 12 && part != "" && len(part) <= 3
	}
	for _, digit := range []byte(whole[:min(len(whole), 15)]) {
		n = 10*n + int64(digit-'0')
	}
	if negative {
		n = -n
	}
	return n, true, whole != "" && len(whole) <= 15
}

// text reads a string in quotes.
func (s *structured) text() bool {
	if !s.take('"') {
		return false
	}
	for *s != "" {
		c := (*s)[0]
		*s = (*s)[1:]
		switch {
		case c == '"':
			return true
		case c == '\\':
			if !s.take('"') && !s.take('\\') {
				return false
			}
		case c < ' ' || c > '~':
			return false
		}
	}
	return false
}

func (s *structured) take(c byte) bool {
	if *s == "" || (*s)[0] != c {
		return false
	}
	*s = (*s)[1:]
	return true
}

func (s *structured) skip(chars string) { s.run(chars) }

// run takes the characters at the front that are any of those.
func (s *structured) run(chars string) string {
	rest := strings.TrimLeft(string(*s), chars)
	taken := string(*s)[:len(*s)-len(rest)]
	*s = structured(rest)
	return taken
}
