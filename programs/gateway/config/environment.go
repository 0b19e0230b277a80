package config

import (
	"os"
	"regexp"
)

// variable is ${NAME}, or ${NAME:-default}.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`)

// expanded is a text with the environment put in: for addresses, which differ
// between the places where one file is used.
func (v value) expanded() string {
	return variable.ReplaceAllStringFunc(v.text(), func(found string) string {
		m := variable.FindStringSubmatch(found)
		if is := os.Getenv(m[1]); is != "" {
			return is
		}
		if m[2] == "" {
			v.fail("names the environment variable %s, which is not set; ${%s:-value} has a default", m[1], m[1])
		}
		return m[3]
	})
}
