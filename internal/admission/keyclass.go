package admission

import "strings"

// The classes of keys, which a denial names instead of the key.
const (
	classGlobal      = "global"
	classAddress     = "address"
	classMethod      = "method"
	classCertificate = "certificate"
	classSecret      = "secret"
	classCombined    = "combined"
	ClassMissing     = "unidentified"
	classCaller      = "caller"
)

// Classes are all of them.
var Classes = []string{
	classGlobal, classAddress, classMethod, classCertificate,
	classSecret, classCombined, ClassMissing, classCaller,
}

// ClassOf reads the class off the form that package keyfunc gives its keys.
// Any other key is a caller.
func ClassOf(key string) string {
	switch {
	case key == "":
		return classGlobal
	case key == MissingName:
		return ClassMissing
	case key[0] == '~':
		return classOfTag(key[1:])
	case key[0] == '/':
		return classMethod
	case addressLike(key):
		return classAddress
	}
	return classCaller
}

func classOfTag(key string) string {
	if key == "unix" {
		return classAddress
	}
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
