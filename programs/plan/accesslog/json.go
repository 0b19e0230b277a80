package accesslog

import (
	"errors"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// jsonLine is an object a line: of nginx with escape=json, of Caddy, Traefik, Envoy, and of slog. A field in
// an object is named with dots, as in request.headers.User-Agent; of a list the first value counts.
type jsonLine struct {
	keys   []string
	values []gjson.Result
}

func (j *jsonLine) parse(text string) error {
	j.keys, j.values = j.keys[:0], j.values[:0]
	if !gjson.Valid(text) {
		return errors.New("not an object of JSON: the line is cut off, or of another format")
	}
	object := gjson.Parse(text)
	if !object.IsObject() {
		return errors.New("not an object of JSON")
	}
	object.ForEach(func(key, value gjson.Result) bool {
		j.keys, j.values = append(j.keys, key.Str), append(j.values, value)
		return true
	})
	if len(j.keys) == 0 {
		return errors.New("an object without fields")
	}
	return nil
}

func (j *jsonLine) get(name string) (string, bool) {
	for i, key := range j.keys {
		if key == name {
			return text(j.values[i])
		}
	}
	outer, inner, nested := strings.Cut(name, ".")
	if !nested {
		return "", false
	}
	for i, key := range j.keys {
		if key == outer && j.values[i].IsObject() {
			return within(j.values[i], inner)
		}
	}
	return "", false
}

// within returns a field of an object, whose name may have dots.
func within(object gjson.Result, name string) (value string, ok bool) {
	outer, inner, nested := strings.Cut(name, ".")
	object.ForEach(func(key, v gjson.Result) bool {
		switch {
		case key.Str == name:
			value, ok = text(v)
		case nested && key.Str == outer && v.IsObject():
			value, ok = within(v, inner)
		}
		return !ok
	})
	return value, ok
}

// text is a value as it is written, the first of a list.
func text(v gjson.Result) (string, bool) {
	if v.IsArray() {
		v = v.Get("0")
	}
	switch v.Type {
	case gjson.String:
		return v.Str, true
	case gjson.Null:
		return "", false
	}
	return v.Raw, true
}

func (j *jsonLine) fields() (all []string) {
	for i, key := range j.keys {
		all = listed(all, key, j.values[i])
	}
	return all
}

func listed(all []string, name string, v gjson.Result) []string {
	if !v.IsObject() {
		return append(all, name)
	}
	v.ForEach(func(key, inner gjson.Result) bool {
		all = listed(all, name+"."+key.Str, inner)
		return true
	})
	return all
}

// textLine is a line of key=value pairs, as slog.TextHandler writes them.
type textLine struct{ keys, values []string }

func (l *textLine) parse(text string) error {
	l.keys, l.values = l.keys[:0], l.values[:0]
	for text = strings.TrimLeft(text, " "); text != ""; text = strings.TrimLeft(text, " ") {
		key, rest, ok := strings.Cut(text, "=")
		if !ok || strings.ContainsAny(key, " \"") {
			return errors.New("not pairs of key=value")
		}
		var value string
		if strings.HasPrefix(rest, `"`) {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				return errors.New("a quote is not closed: the line is cut off")
			}
			value, _ = strconv.Unquote(quoted)
			text = rest[len(quoted):]
		} else {
			value, text, _ = strings.Cut(rest, " ")
		}
		l.keys, l.values = append(l.keys, key), append(l.values, value)
	}
	if len(l.keys) == 0 {
		return errors.New("not pairs of key=value")
	}
	return nil
}

func (l *textLine) get(name string) (string, bool) { return column(l.keys, l.values, name) }

func (l *textLine) fields() []string { return append([]string(nil), l.keys...) }

func column(names, values []string, name string) (string, bool) {
	for i, n := range names {
		if n == name && i < len(values) {
			return values[i], true
		}
	}
	return "", false
}

// csvLine is a line of values, whose names are in the first line.
type csvLine struct {
	names, values []string
	comma         byte
}

func (l *csvLine) parse(text string) error {
	l.values = l.values[:0]
	for {
		value, rest, more, err := cell(text, l.comma)
		if err != nil {
			return err
		}
		l.values = append(l.values, value)
		if text = rest; !more {
			break
		}
	}
	if l.names != nil && len(l.values) != len(l.names) {
		return errors.New(strconv.Itoa(len(l.values)) + " values, the first line has " + strconv.Itoa(len(l.names)))
	}
	return nil
}

// cell cuts off the next value, in quotes or not as in RFC 4180, but for line ends within quotes.
func cell(text string, comma byte) (value, rest string, more bool, err error) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, more = strings.Cut(text, string(comma))
		return value, rest, more, nil
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != '"':
		case i+1 < len(text) && text[i+1] == '"':
			i++
		case i+1 == len(text) || text[i+1] == comma:
			return strings.ReplaceAll(text[1:i], `""`, `"`), text[min(i+2, len(text)):], i+1 < len(text), nil
		default:
			return "", "", false, errors.New("a quote ends within a value")
		}
	}
	return "", "", false, errors.New("a quote is not closed: the line is cut off")
}

func (l *csvLine) get(name string) (string, bool) { return column(l.names, l.values, name) }

func (l *csvLine) fields() []string { return append([]string(nil), l.names...) }
