package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// reader collects the mistakes of one file.
type reader struct {
	file string
	errs Errors
	at   map[string]*yaml.Node // the place of each field
}

// value is a node of the file with the name of the field that holds it. Reading
// it as something that it is not notes an error and gives a zero value, so that
// one pass finds everything.
type value struct {
	r    *reader
	node *yaml.Node
	path string
}

// mostDepth bounds how deep sections may lie in each other. An alias that
// holds itself has no end.
const mostDepth = 16

func (v value) fail(format string, args ...any) {
	v.r.errs = append(v.r.errs, &Error{
		File: v.r.file, Line: v.node.Line, Column: v.node.Column,
		Field: v.path, Reason: InFile.Replace(fmt.Sprintf(format, args...)),
	})
}

// real is the node itself, behind any aliases.
func (v value) real() *yaml.Node {
	n := v.node
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (v value) isMapping() bool  { return v.real().Kind == yaml.MappingNode }
func (v value) isSequence() bool { return v.real().Kind == yaml.SequenceNode }

func (v value) kind() string {
	switch n := v.real(); n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		if n.Tag == "!!null" {
			return "empty"
		}
		return strconv.Quote(n.Value)
	}
}

// field is one field of a mapping.
type field struct {
	name     string
	required bool
	read     func(value)
}

// fields reads a mapping.
func (v value) fields(known ...field) {
	n := v.real()
	if n.Kind != yaml.MappingNode {
		v.fail("is %s, want a mapping of %s", v.kind(), names(known))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		at := value{v.r, key, v.join(key.Value)}
		if line, twice := seen[key.Value]; twice {
			at.fail("is here a second time; the first is in line %d", line)
			continue
		}
		seen[key.Value] = key.Line
		v.r.at[at.path] = key
		if f := find(known, key.Value); f != nil {
			f.read(value{v.r, n.Content[i+1], v.join(key.Value)})
		} else {
			at.fail("unknown field, want one of %s", names(known))
		}
	}
	for _, f := range known {
		if _, ok := seen[f.name]; f.required && !ok {
			value{v.r, v.node, v.join(f.name)}.fail("is missing")
		}
	}
}

func (v value) join(name string) string {
	if v.path == "" {
		return name
	}
	return v.path + "." + name
}

func find(known []field, name string) *field {
	for i := range known {
		if known[i].name == name {
			return &known[i]
		}
	}
	return nil
}

func names(known []field) string {
	all := make([]string, len(known))
	for i, f := range known {
		all[i] = f.name
	}
	return strings.Join(all, ", ")
}

// items is the elements of a list.
func (v value) items() []value {
	n := v.real()
	if n.Kind != yaml.SequenceNode {
		v.fail("is %s, want a list", v.kind())
		return nil
	}
	all := make([]value, len(n.Content))
	for i, c := range n.Content {
		all[i] = value{v.r, c, fmt.Sprintf("%s[%d]", v.path, i)}
	}
	return all
}

// text is a scalar that is not empty, as it is written.
func (v value) text() string {
	n := v.real()
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		v.fail("is %s, want a text", v.kind())
		return ""
	}
	return n.Value
}

// oneOf is a text out of a few.
func (v value) oneOf(words ...string) string {
	s := v.text()
	for _, w := range words {
		if s == w {
			return s
		}
	}
	if s != "" {
		v.fail("is %q, want one of %s", s, strings.Join(words, ", "))
	}
	return ""
}

func (v value) boolean() bool {
	switch v.text() {
	case "true", "on":
		return true
	case "false", "off", "":
		return false
	}
	v.fail("is %s, want true or false", v.kind())
	return false
}

func (v value) whole(least, most int64) int64 {
	s := v.text()
	if s == "" {
		return least
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		v.fail("is %q, want a whole number from %d to %d", s, least, most)
		return least
	}
	return n
}

func (v value) duration(least, most time.Duration) time.Duration {
	s := v.text()
	if s == "" {
		return least
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < least || d > most {
		v.fail("is %q, want a duration from %v to %v", s, least, most)
		return least
	}
	return d
}
