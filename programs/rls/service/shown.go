package service

import (
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/programs/gateway/config"
	"github.com/sluice-go/sluice/programs/gateway/ops"
)

// shown is the limits of a file by their names, as operators see them.
func shown(f *config.File, limiters map[string]algo.Limiter) map[string]ops.Limit {
	named := map[string]ops.Limit{}
	var down func(path, level []*config.Descriptor)
	down = func(path, level []*config.Descriptor) {
		for _, d := range level {
			here := append(path[:len(path):len(path)], d)
			if d.Limited && !d.Banned {
				named[d.Name] = ops.Limit{Limiter: limiters[d.ID], Text: d.Spec.String(), Trial: d.Shadow, Identity: identity(here)}
			}
			down(here, d.Next)
		}
	}
	for _, d := range f.Domains {
		down(nil, d.Descriptors)
	}
	return named
}

// identity translates the values of the entries that the file leaves open into
// the key of a descriptor.
func identity(path []*config.Descriptor) config.Identity {
	var id config.Identity
	for _, d := range path {
		if _, open := fixed(d); open {
			id.Parts = append(id.Parts, d.Key)
		}
	}
	if len(id.Parts) == 0 {
		id.Parts = []string{config.Everybody}
	}
	id.Key = func(values []string) (string, error) {
		entries := make([]entry, len(path))
		for i, d := range path {
			value, open := fixed(d)
			if open {
				value, values = values[0], values[1:]
			}
			entries[i] = entry{d.Key, value}
		}
		return keyOfEntries(entries), nil
	}
	return id
}

// fixed is the value that the file asks for; open reports that requests bring it.
func fixed(d *config.Descriptor) (value string, open bool) {
	return d.Value, !d.HasValue || d.Pattern() && !d.Shared
}
