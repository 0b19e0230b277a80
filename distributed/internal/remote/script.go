package remote

import (
	"crypto/fips140"
	"crypto/sha1"
	"encoding/hex"
	"sync"
)

// Script is a Lua script that decides for any number of keys, by the server's clock. It
// takes Args integers for each key, and replies the server's time in microseconds, then
// Replies integers for each key. If its last argument is 'd' and an instant in the past,
// it does nothing and replies only the time.
type Script struct {
	Name          string
	Args, Replies int
	text          func() (source string, word any) // word: its SHA-1 in hexadecimal, as EVALSHA takes it
}

// NewScript makes a Script. It calls source on first use.
func NewScript(name string, source func() string, args, replies int) *Script {
	return &Script{name, args, replies, sync.OnceValues(func() (string, any) {
		var sum [sha1.Size]byte
		text := source()
		fips140.WithoutEnforcement(func() { sum = sha1.Sum([]byte(text)) }) // the name of a script, not a secret
		return text, hex.EncodeToString(sum[:])
	})}
}

// Source returns the text that EVAL takes.
func (s *Script) Source() string { source, _ := s.text(); return source }

// Hash returns the word by which EVALSHA names the script.
func (s *Script) Hash() string { _, word := s.text(); return word.(string) }

// The sizes of scripts.
const (
	maxArgs    = 7 // of any script
	MaxReplies = 5 // of most; shares have more
)

// Args holds the arguments of a script for one key; each script uses the first
// Script.Args.
type Args [maxArgs]int64
