package config

import (
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// Limit is a named limit of the gateway.
type Limit struct {
	// Name is the name on the wire and in metrics, and identifies the limit
	// after a change of the file.
	Name   string
	Keys   []Key
	Spec   algo.Spec
	Shadow bool
	Cost   Cost
}

// Cost is the number of units that a request is charged.
type Cost struct {
	Units  int64  // 0 means 1
	Header string // if not empty, this header of the request says it
}

// book is the limits read so far: names are used once, and
// routes refer to those that were read before.
type book struct {
	file   *File
	limits map[string]*Limit
	lines  map[string]int
}

func newBook(f *File) *book {
	return &book{file: f, limits: map[string]*Limit{}, lines: map[string]int{}}
}

// readShared reads the limits that routes refer to by name.
func (b *book) readShared(v *value) (all []*Limit) {
	if v == nil {
		return nil
	}
	for _, item := range v.items() {
		all = append(all, b.readLimit(item))
	}
	return all
}

// readLimits reads the limits of a route: the name of a shared one, or a limit
// of its own.
func (b *book) readLimits(v value) (all []*Limit) {
	names := map[string]bool{}
	for _, item := range v.items() {
		var l *Limit
		if item.isMapping() {
			l = b.readLimit(item)
		} else if name := item.text(); name != "" {
			if l = b.limits[name]; l == nil {
				item.fail("is %q, and no limit above has that name", name)
				continue
			}
		}
		if l == nil {
			continue
		}
		if names[l.Name] && !item.isMapping() {
			item.fail("is %q for the second time", l.Name)
			continue
		}
		names[l.Name] = true
		all = append(all, l)
	}
	return all
}

func (b *book) readLimit(v value) *Limit {
	l := &Limit{}
	v.fields(
		field{name: "name", required: true, read: func(v value) { l.Name = b.readName(v) }},
		field{name: "key", required: true, read: func(v value) {
			l.Keys = readKeys(v)
			if b.file.Store.Kind == Redis && b.file.Pepper.IsZero() && HasKind(l.Keys, "secret") {
				v.fail("has a secret, so with store: redis there must be a pepper that all instances share")
			}
			if b.file.Snapshot.File != "" && b.file.Pepper.IsZero() && HasKind(l.Keys, "secret") {
				v.fail("has a secret, so with a snapshot there must be a pepper that outlasts a restart")
			}
			if b.file.JWT.Keys.IsZero() && HasKind(l.Keys, "jwt") {
				v.fail("has a claim of a token, so there must be jwt.keys to verify it")
			}
		}},
		field{name: "limit", required: true, read: func(v value) { l.Spec = b.readSpec(v) }},
		field{name: "shadow", read: func(v value) { l.Shadow = v.boolean() }},
		field{name: "cost", read: func(v value) { l.Cost.read(v) }},
	)
	if l.Name != "" && b.limits[l.Name] == nil {
		b.limits[l.Name] = l
	}
	return l
}

func (b *book) readName(v value) string {
	s := v.text()
	if s == "" {
		return ""
	}
	if !ValidName(s) {
		v.fail("is %q, want 1 to 64 of A-Z a-z 0-9 . _ -", s)
		return ""
	}
	if line, taken := b.lines[s]; taken {
		v.fail("is %q, which the limit in line %d is called already", s, line)
	}
	b.lines[s] = v.node.Line
	return s
}

// ValidName reports whether a limit may be called s.
func ValidName(s string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return len(s) >= 1 && len(s) <= 64 && strings.Trim(s, allowed) == ""
}

// readSpec reads a limit in the text form, and tries it out.
func (b *book) readSpec(v value) algo.Spec {
	s := v.text()
	if s == "" {
		return algo.Spec{}
	}
	spec, err := algo.Parse(s)
	if err == nil {
		err = b.keepable(spec)
	}
	if err != nil {
		v.fail("is %q: %v", s, err)
	}
	return spec
}

// readSpecOrBan reads a limit, or a rate of 0, which admits nothing.
func (b *book) readSpecOrBan(v value) (spec algo.Spec, banned bool) {
	period, banned := strings.CutPrefix(v.real().Value, "0/")
	if !banned {
		return b.readSpec(v), false
	}
	spec, err := algo.Parse("1/" + period)
	if err != nil || strings.Contains(period, " ") {
		v.fail("is %q, want a rate of 0 and nothing else, such as 0/s", v.real().Value)
	}
	return spec, true
}

// keepable reports whether the store can keep a limit.
func (b *book) keepable(spec algo.Spec) error {
	if b.file.Store.Kind == Redis {
		return distributed.Validate(spec)
	}
	_, err := spec.New()
	return err
}

// try notes an error of a limit that is not written as a text.
func (b *book) try(v value, spec algo.Spec) {
	if err := b.keepable(spec); err != nil {
		v.fail("makes the limit %q: %v", spec, err)
	}
}

func (c *Cost) read(v value) {
	s := v.text()
	if name, ok := strings.CutPrefix(s, "header:"); ok {
		c.Header = strings.TrimSpace(name)
		if !httpguts.ValidHeaderFieldName(c.Header) {
			v.fail("is %q, %q is not the name of a header", s, c.Header)
		}
		return
	}
	if s != "" {
		c.Units = v.whole(1, 1<<31)
	}
}
