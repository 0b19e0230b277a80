package config

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-go/sluice/algo"
)

// Fingerprint identifies the contents of a file and of those that match the patterns
// in a few characters.
func Fingerprint(data []byte, patterns []string) (string, error) {
	sum := sha256.New()
	sum.Write(data)
	for _, path := range matching(patterns) {
		text, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		sum.Write([]byte(part(path)))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// matching is the files that match, in order and once each.
func matching(patterns []string) (all []string) {
	for _, p := range patterns {
		found, _ := filepath.Glob(p) // readEnvoyFiles has checked the pattern
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// readPatterns reads patterns of files, relative to the file that names them.
func (f *File) readPatterns(v value) {
	for _, item := range v.items() {
		p := item.text()
		if !filepath.IsAbs(p) {
			p = filepath.Join(filepath.Dir(f.Path), p)
		}
		if found, err := filepath.Glob(p); err != nil || len(found) == 0 {
			item.fail("is %q, which no file matches", p)
		}
		f.EnvoyFiles = append(f.EnvoyFiles, p)
	}
}

// readEnvoyFiles reads the files of envoyproxy/ratelimit that f names: one domain
// each. Mistakes in them are errors of f.
func (f *File) readEnvoyFiles(into *reader) {
	lines := map[string]string{}
	for _, d := range f.Domains {
		lines[d.Name] = f.Path
	}
	for _, path := range matching(f.EnvoyFiles) {
		r := &reader{file: path, at: map[string]*yaml.Node{}}
		data, err := os.ReadFile(path)
		var doc yaml.Node
		if err == nil {
			err = yaml.Load(data, &doc)
		}
		if err != nil {
			into.errs = append(into.errs, broken(path, err))
			continue
		}
		v := value{r, doc.Content[0], ""}
		d := newBook(f).readEnvoyDomain(v)
		if other, twice := lines[d.Name]; twice && d.Name != "" {
			v.fail("has the domain %q, as %s has", d.Name, other)
		}
		lines[d.Name] = path
		f.Domains = append(f.Domains, d)
		into.errs = append(into.errs, r.errs...)
	}
}

func (b *book) readEnvoyDomain(v value) *Domain {
	d := &Domain{Headers: b.file.DomainHeaders}
	var descriptors *value
	v.fields(
		field{name: "domain", required: true, read: func(v value) { d.Name = v.text() }},
		field{name: "descriptors", read: func(v value) { descriptors = &v }},
	)
	if descriptors != nil {
		d.Descriptors = level{b, b.readEnvoyDescriptor}.read(*descriptors, d.Name, part(d.Name), 1)
	}
	return d
}

func (b *book) readEnvoyDescriptor(d *Descriptor, v value) (next, named *value) {
	var shared *value
	v.fields(
		field{name: "key", required: true, read: func(v value) { d.Key = readEntryKey(v) }},
		field{name: "value", read: func(v value) {
			if d.Value = v.real().Value; d.Value != "" { // an empty one is none
				d.HasValue = true
			}
		}},
		field{name: "rate_limit", read: func(v value) { b.readEnvoyLimit(v, d) }},
		field{name: "shadow_mode", read: func(v value) { d.Shadow = v.boolean() }},
		field{name: "quota_mode", read: func(v value) { d.Quota = v.boolean() }},
		field{name: "share_threshold", read: func(v value) { d.Shared = v.boolean(); shared = &v }},
		field{name: "value_to_metric", read: func(v value) { v.boolean(); b.file.ignore(v) }},
		field{name: "metadata", read: b.file.ignore},
		field{name: "detailed_metric", read: func(v value) { d.Detailed = v.boolean() }},
		field{name: "descriptors", read: func(v value) { next = &v }},
	)
	if d.Shared && !d.Pattern() {
		shared.fail("needs a value with an asterisk")
	}
	return next, nil
}

// ignore warns about a field without effect.
func (f *File) ignore(v value) {
	f.Warnings = append(f.Warnings, &Error{
		File: v.r.file, Line: v.r.at[v.path].Line, Column: v.r.at[v.path].Column, Field: v.path, Reason: "is not supported and changes no decision",
	})
}

// envoyUnits are the periods of the units; a month has 30 days and a year 365.
var envoyUnits = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour,
	"week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour, "year": 365 * 24 * time.Hour,
}

// readEnvoyLimit reads a rate_limit: a fixed window, a ban if it has no requests, or none.
func (b *book) readEnvoyLimit(v value, d *Descriptor) {
	unit, count := "", int64(-1)
	var at *value
	v.fields(
		field{name: "unit", read: func(v value) { unit, at = strings.ToLower(v.text()), &v }},
		field{name: "requests_per_unit", read: func(v value) { count = v.whole(0, 1<<32-1) }},
		field{name: "unlimited", read: func(v value) { d.Unlimited = v.boolean() }},
		field{name: "name", read: func(v value) { d.Label = v.text() }},
		field{name: "replaces", read: func(v value) {
			for _, item := range v.items() {
				item.fields(field{name: "name", required: true, read: func(v value) { d.Replaces = append(d.Replaces, v.text()) }})
			}
		}},
	)
	if d.Label != "" && slices.Contains(d.Replaces, d.Label) {
		v.fail("replaces itself, %q", d.Label)
	}
	period, known := envoyUnits[unit]
	switch {
	case d.Unlimited:
		if unit != "" {
			v.fail("has both unlimited and unit, want one of them")
		}
		return
	case at == nil || count < 0:
		v.fail("wants unit and requests_per_unit, or unlimited")
		return
	case !known:
		at.fail("is %q, want second, minute, hour, day, week, month or year", unit)
		return
	}
	d.Limited = true
	if count == 0 {
		d.Banned, d.Spec = true, algo.Spec{Rate: algo.Per(1, period)}
		return
	}
	d.Spec = algo.Spec{Algorithm: "fixed-window", Rate: algo.Per(count, period)}
	if b.file.Store.Kind == Local { // on Redis all windows are aligned
		d.Spec.AlignedTo = time.Unix(0, 0).UTC()
	}
	b.try(*at, d.Spec)
}
