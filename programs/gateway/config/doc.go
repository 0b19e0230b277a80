// Package config reads the file of the gateway and of the rate limit service:
// YAML in, checked values out. All mistakes of a file are reported at once,
// each thing with its line, column and field, and a field that does not exist
// is wrong.
//
// The package starts nothing and opens no connection. It is not a general reader of
// YAML: every field is known here by name.
package config
