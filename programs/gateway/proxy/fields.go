package proxy

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// isRateField reports whether a field says something about limits.
func isRateField(name string) bool {
	return strings.HasPrefix(name, "Ratelimit") || strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "X-Rate-Limit-")
}

// settleFields leaves one set of rate fields for each policy in the header h of an
// answer, which has those of the upstream beside ours, or in their place.
func settleFields(h, ours http.Header, mode string) {
	theirs := http.Header{}
	for name, lines := range h {
		if isRateField(name) {
			if n := len(ours[name]); len(lines) >= n && slices.Equal(lines[:n], ours[name]) {
				lines = lines[n:]
			}
			if delete(h, name); len(lines) > 0 {
				theirs[name] = lines
			}
		}
	}
	own := http.Header{}
	for name, lines := range ours {
		if isRateField(name) {
			own[name] = lines
		}
	}
	switch {
	case mode == "keep" && len(theirs) > 0:
		own = theirs
	case mode == "tighter":
		own = tighter(own, theirs)
	}
	maps.Copy(h, own)
}

// The fields that have one name on both sides.
const (
	limitField, policyField = "Ratelimit", "Ratelimit-Policy"
	remainingField          = "X-Ratelimit-Remaining"
)

// tighter is both sets, and of two policies with one name the one with less remaining.
// X-RateLimit-* is the set of one policy. Fields of theirs that are not in the form of
// RateLimit are left out: they would make ours unreadable.
func tighter(ours, theirs http.Header) http.Header {
	all := maps.Clone(theirs)
	if lessRemains(ours, theirs) {
		maps.DeleteFunc(all, func(name string, _ []string) bool { return strings.HasPrefix(name, "X-") })
	}
	for name, lines := range ours {
		if !strings.HasPrefix(name, "X-") || lessRemains(ours, theirs) {
			all[name] = lines
		}
	}
	limits, policies := items(theirs[limitField]), items(theirs[policyField])
	if len(ours[limitField]) == 0 || len(limits)+len(policies) == 0 {
		return all
	}
	chosen := func(o, t item) bool { return t.left < o.left }
	all[limitField] = []string{merge(items(ours[limitField]), limits, chosen)}
	all[policyField] = []string{merge(items(ours[policyField]), policies, func(o, _ item) bool {
		mine, its := find(items(ours[limitField]), o.name), find(limits, o.name)
		return mine != nil && its != nil && chosen(*mine, *its)
	})}
	return all
}

// lessRemains reports whether the X-RateLimit-* of ours are the tighter ones.
func lessRemains(ours, theirs http.Header) bool {
	own, err := strconv.ParseInt(ours.Get(remainingField), 10, 64)
	if err != nil {
		return false
	}
	its, err := strconv.ParseInt(theirs.Get(remainingField), 10, 64)
	return err != nil || own <= its
}

// item is one policy in a field.
type item struct {
	text, name string
	left       int64 // r
}

// items are the policies in the lines of a field, none if one is not well-formed.
func items(lines []string) (all []item) {
	for rest := strings.Join(lines, ","); rest != ""; {
		text := rest[:endOf(rest, ',')]
		rest = strings.TrimPrefix(rest[len(text):], ",")
		text = strings.TrimSpace(text)
		if !strings.HasPrefix(text, `"`) {
			return nil
		}
		i := item{text: text, name: text[:endOf(text, ';')]}
		for _, p := range strings.Split(text[len(i.name):], ";") {
			if r, ok := strings.CutPrefix(strings.TrimSpace(p), "r="); ok {
				i.left, _ = strconv.ParseInt(r, 10, 64)
			}
		}
		all = append(all, i)
	}
	return all
}

// endOf is where the first c that is not in quotes begins.
func endOf(s string, c byte) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == c && !quoted:
			return i
		}
	}
	return len(s)
}

func find(all []item, name string) *item {
	if i := slices.IndexFunc(all, func(i item) bool { return i.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// merge writes the items of ours, or those of theirs that are chosen in their place, and
// then those that only theirs has.
func merge(ours, theirs []item, chosen func(ours, theirs item) bool) string {
	var texts []string
	for _, o := range ours {
		if t := find(theirs, o.name); t != nil && chosen(o, *t) {
			o = *t
		}
		texts = append(texts, o.text)
	}
	for _, t := range theirs {
		if find(ours, t.name) == nil {
			texts = append(texts, t.text)
		}
	}
	return strings.Join(texts, ", ")
}
