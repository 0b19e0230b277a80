package admission

import "github.com/sluice-go/sluice/internal/keytext"

// ClassMissing is the class of [MissingName].
var ClassMissing = keytext.ClassOf(MissingName)

// Classes are all classes of keys.
var Classes = keytext.Classes

// ClassOf is the class of a key, which a denial names instead of the key.
func ClassOf(key string) string { return keytext.ClassOf(key) }
