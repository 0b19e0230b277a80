package config

import (
	"net/url"
	"slices"
)

// CORS says which pages in browsers may read the answers.
type CORS struct {
	Origins     []string // as browsers send them: https://app.example.com; "*" is any
	Credentials bool     // pages may send cookies and certificates
}

func (c *CORS) read(v value) {
	v.fields(
		field{name: "origins", required: true, read: func(v value) {
			for _, item := range v.items() {
				s := item.text()
				if u, err := url.Parse(s); s != "*" && (err != nil || u.Host == "" || s != u.Scheme+"://"+u.Host) {
					item.fail("is %q, want an origin such as https://app.example.com, or *", s)
				}
				c.Origins = append(c.Origins, s)
			}
		}},
		field{name: "credentials", read: func(v value) { c.Credentials = v.boolean() }},
	)
	if c.Credentials && slices.Contains(c.Origins, "*") {
		v.fail("has credentials for any origin: list the origins")
	}
}

// Allows reports whether pages of an origin may read the answers.
func (c CORS) Allows(origin string) bool {
	return origin != "" && (slices.Contains(c.Origins, origin) || slices.Contains(c.Origins, "*"))
}
