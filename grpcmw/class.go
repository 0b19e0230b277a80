package grpcmw

import "strings"

// The classes of keys, which a denial names instead of the key.
const (
	classGlobal      = "global"
	classAddress     = "address"
	classMethod      = "method"
	classCertificate = "certificate"
	classSecret      = "secret"
	classCombined    = "combined"
	classMissing     = "unidentified"
	classCaller      = "caller"
)

var classes = []string{
	classGlobal, classAddress, classMethod, classCertificate,
	classSecret, classCombined, classMissing, classCaller,
}

// classOf reads the class off the form that package keyfunc gives its keys.
// What it does not know is a caller.
func classOf(key string) string {
	switch {
	case key == "" || key == "~global":
		return classGlobal
	case key == missingKey:
		return classMissing
	case key[0] == '~':
		return classOfTag(key[1:])
	case key[0] == '/':
		return classMethod
	case key == "local" || addressLike(key):
		return classAddress
	}
	return classCaller
}

func classOfTag(key string) string {
	end := strings.IndexAny(key, ":#/")
	if end < 0 {
		return classCaller
	}
	switch key[:end] {
	case "hop":
		return classAddress
	case "uri", "dns", "email", "ip":
		return classCertificate
	case "secret":
		return classSecret
	case "join":
		return classCombined
	}
	return classCaller
}

// addressLike reports whether key is an address or a prefix: hexadecimal
// digits and at least one separator.
func addressLike(key string) bool {
	return strings.Trim(key, "0123456789abcdef.:/") == "" && strings.ContainsAny(key, ".:")
}
