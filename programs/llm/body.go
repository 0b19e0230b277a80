package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// object is a JSON object whose text stays as it is, but for the values that are set.
type object struct {
	text    []byte
	members []member
	added   []string // members before the others
}

type member struct {
	name     string
	value    []byte
	from, to int // of the value in the text
}

// parseObject reads an object. Two members of one name, of which an upstream might read either,
// are an error, in whatever case they are written.
func parseObject(text []byte) (*object, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the request is no JSON object")
	}
	o := &object{text: text}
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return nil, errors.New("the request is not JSON")
		}
		m := member{name: name.(string), value: value, to: int(d.InputOffset())}
		m.from = m.to - len(value)
		if slices.ContainsFunc(o.members, func(n member) bool { return strings.EqualFold(n.name, m.name) }) {
			return nil, fmt.Errorf("%q is there twice", m.name)
		}
		o.members = append(o.members, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("the request is not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("the request is more than a JSON object")
	}
	return o, nil
}

// get is the member of a name, nil if it is absent.
func (o *object) get(name string) *member {
	if i := slices.IndexFunc(o.members, func(m member) bool { return m.name == name }); i >= 0 {
		return &o.members[i]
	}
	return nil
}

// set changes a member, or adds it.
func (o *object) set(name, value string) {
	if m := o.get(name); m != nil {
		m.value = []byte(value)
		return
	}
	o.added = append(o.added, fmt.Sprintf("%q:%s", name, value))
}

// bytes is the text with the changes.
func (o *object) bytes() []byte {
	open := bytes.IndexByte(o.text, '{') + 1
	out := slices.Concat(o.text[:open], []byte(strings.Join(o.added, ",")))
	if len(o.added) > 0 && len(o.members) > 0 {
		out = append(out, ',')
	}
	for _, m := range o.members {
		out = append(append(out, o.text[open:m.from]...), m.value...)
		open = m.to
	}
	return append(out, o.text[open:]...)
}

// whole reads a whole number of 1 or more; 0 if the member is absent or null.
func (o *object) whole(name string) (n int64, err error) {
	m := o.get(name)
	if m == nil || string(m.value) == "null" {
		return 0, nil
	}
	if json.Unmarshal(m.value, &n) != nil || n < 1 {
		return 0, fmt.Errorf("%q is %.40s, want a whole number of 1 or more", name, m.value)
	}
	return n, nil
}

// value reads a member into to, which stays as it is if the member is absent or null.
func (o *object) value(name string, to any) error {
	if m := o.get(name); m != nil && json.Unmarshal(m.value, to) != nil {
		return fmt.Errorf("%q is %.40s, want a %T", name, m.value, to)
	}
	return nil
}
