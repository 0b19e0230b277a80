package config

import (
	"net/url"
	"path"
	"strings"
)

// Spelling is one path for all that frameworks take for the same: in lower case, decoded,
// without matrix parameters and dot segments, and with a slash at the end.
func Spelling(escaped string) string {
	for range 3 { // some decode twice
		decoded, err := url.PathUnescape(escaped)
		if err != nil || decoded == escaped {
			break
		}
		escaped = decoded
	}
	parts := strings.Split(strings.ReplaceAll(strings.ToLower(escaped), `\`, "/"), "/")
	for i, part := range parts {
		parts[i], _, _ = strings.Cut(part, ";")
	}
	clean := path.Clean("/" + strings.Join(parts, "/"))
	return strings.TrimSuffix(clean, "/") + "/"
}

// SpellingPattern is the pattern for [Spelling] of the paths that a pattern matches.
func SpellingPattern(pattern string) string {
	host := strings.Index(pattern, "/")
	if host < 0 {
		return pattern // invalid
	}
	parts := strings.Split(pattern[host:], "/")
	for i, part := range parts {
		if !strings.HasPrefix(part, "{") {
			part, _ = url.PathUnescape(part)
			parts[i] = strings.ToLower(part)
		}
	}
	as := strings.Join(parts, "/")
	if last := parts[len(parts)-1]; last != "" && last != "{$}" && !strings.HasSuffix(last, "...}") {
		as += "/{$}"
	}
	return pattern[:host] + as
}
