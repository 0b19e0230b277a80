package config

import (
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/algo"
)

// Domain is the limits of one domain of the rate limit service.
type Domain struct {
	Name string
	// Headers are the fields added to responses.
	Headers     Headers
	Descriptors []*Descriptor
}

// Descriptor is a level of a domain: the rule for descriptors that have
// this entry here.
type Descriptor struct {
	Key string
	// Value is the required value of the entry. Each asterisk in it stands for any
	// text; without a Value any value matches. Each value has a limit of its own.
	Value    string
	HasValue bool
	// Shared gives all values that match a pattern one limit.
	Shared bool
	// Limited says that the descriptors that end here have a limit, Spec;
	// Unlimited, that they are known and have none.
	Limited   bool
	Unlimited bool
	Spec      algo.Spec
	Shadow    bool
	// Quota reports the limit to the caller, and denies the request only if all
	// quotas of the request are spent.
	Quota bool
	// Banned says that the limit admits nothing; Spec is of no use then.
	Banned bool
	// Detailed adds the values of the entries to the name in metrics.
	Detailed bool
	// Label is the name that the Replaces of other descriptors refer to: a request
	// that meets both has the limit of the latter only.
	Label    string
	Replaces []string
	// Name is the name of the limit, and ID identifies it after a change of
	// the file: the path to this limit.
	Name, ID string
	Next     []*Descriptor
}

// Pattern reports whether the value stands for several.
func (d *Descriptor) Pattern() bool { return strings.Contains(d.Value, "*") }

// Matches reports whether a value fits the pattern.
func (d *Descriptor) Matches(value string) bool {
	parts := strings.Split(d.Value, "*")
	rest, ok := strings.CutPrefix(value, parts[0])
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		if !ok {
			return false
		}
		_, rest, ok = strings.Cut(rest, part)
	}
	return ok && strings.HasSuffix(rest, last)
}

// readEntryKey reads the key of a descriptor.
func readEntryKey(v value) string {
	key := v.text()
	if strings.Contains(key, "*") {
		v.fail("is %q: patterns are for values", key)
	}
	return key
}

func (b *book) readDomains(v *value) (all []*Domain) {
	if v == nil {
		return nil
	}
	lines := map[string]int{}
	for _, item := range v.items() {
		d := &Domain{Headers: b.file.DomainHeaders}
		var descriptors *value
		item.fields(
			field{name: "name", required: true, read: func(v value) {
				d.Name = v.text()
				if line, twice := lines[d.Name]; twice {
					v.fail("is %q, which the domain in line %d is called already", d.Name, line)
				}
				lines[d.Name] = v.node.Line
			}},
			field{name: "headers", read: func(v value) { d.Headers = readHeaders(v) }},
			field{name: "descriptors", required: true, read: func(v value) { descriptors = &v }},
		)
		if descriptors != nil {
			d.Descriptors = level{b, b.readDescriptor}.read(*descriptors, d.Name, part(d.Name), 1)
		}
		all = append(all, d)
	}
	return all
}

// level reads the descriptors beside each other under one parent. one reads the fields of a
// descriptor, and returns the fields next and name if it has them.
type level struct {
	*book
	one func(d *Descriptor, v value) (next, named *value)
}

// read reads a level. Its descriptors continue the name and the ID of the parent.
func (l level) read(v value, name, id string, depth int) (all []*Descriptor) {
	if depth > mostDepth {
		v.fail("lies %d levels deep, want at most %d", depth, mostDepth)
		return nil
	}
	lines := map[string]int{}
	for _, item := range v.items() {
		d := l.descriptor(item, name, id, depth)
		if line, twice := lines[d.ID]; twice {
			item.fail("is the same as that in line %d", line)
		}
		lines[d.ID] = item.node.Line
		all = append(all, d)
	}
	return all
}

func (l level) descriptor(v value, name, id string, depth int) *Descriptor {
	d := &Descriptor{}
	next, named := l.one(d, v)
	name += "." + d.Key
	d.ID = id + part(d.Key)
	if d.HasValue {
		name += "." + d.Value
		d.ID += "=" + part(d.Value)
	}
	d.Name = safeName(name)
	if named != nil {
		d.Name = l.readName(*named)
	}
	if next != nil {
		d.Next = l.read(*next, name, d.ID, depth+1)
	}
	return d
}

// readDescriptor reads one of the file's own form.
func (b *book) readDescriptor(d *Descriptor, v value) (next, named *value) {
	v.fields(
		field{name: "key", required: true, read: func(v value) { d.Key = readEntryKey(v) }},
		field{name: "value", read: func(v value) { d.Value, d.HasValue = v.text(), true }},
		field{name: "name", read: func(v value) { named = &v }},
		field{name: "limit", read: func(v value) { d.Limited = true; d.Spec, d.Banned = b.readSpecOrBan(v) }},
		field{name: "unlimited", read: func(v value) { d.Unlimited = v.boolean() }},
		field{name: "shadow", read: func(v value) { d.Shadow = v.boolean() }},
		field{name: "descriptors", read: func(v value) { next = &v }},
	)
	if d.Limited && d.Unlimited {
		v.fail("has both limit and unlimited, want one of them")
	}
	if d.Shadow && !d.Limited {
		v.fail("has shadow and no limit")
	}
	return next, named
}

// part writes s with its length before it, so that no two ways have one ID.
func part(s string) string { return strconv.Itoa(len(s)) + ":" + s }

// safeName makes a name for the wire from a name in the file.
func safeName(s string) string {
	out := strings.Map(func(r rune) rune {
		if ValidName(string(r)) {
			return r
		}
		return '-'
	}, s)
	return out[:min(len(out), 64)]
}
