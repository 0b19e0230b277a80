package remote

import (
	"crypto/fips140"
	"crypto/sha1"
	"encoding/hex"
	"sync"
)

// Script is a Lua script that decides for any number of keys. Arguments and
// replies are integers: Args of them for each key, and a reply that begins with
// the server's time in microseconds, followed by Replies integers for each key. A script
// whose last argument is 'd' and an instant that has passed by the server's clock replies the
// time alone, and has done nothing.
//
// The clock is always the server's, so the clocks of the instances do not
// matter.
type Script struct {
	Name          string
	Args, Replies int
	text          func() (source string, word any) // word: its SHA-1 in hexadecimal, as EVALSHA takes it
}

// NewScript makes a script, whose source is made for its first use.
func NewScript(name string, source func() string, args, replies int) *Script {
	return &Script{name, args, replies, sync.OnceValues(func() (string, any) {
		var sum [sha1.Size]byte
		text := source()
		fips140.WithoutEnforcement(func() { sum = sha1.Sum([]byte(text)) }) // the name of a script, not a secret
		return text, hex.EncodeToString(sum[:])
	})}
}

// Source is the text that EVAL takes.
func (s *Script) Source() string { source, _ := s.text(); return source }

// Hash is the word by which EVALSHA names the script.
func (s *Script) Hash() string { _, word := s.text(); return word.(string) }

// The sizes of scripts.
const (
	maxArgs    = 7 // of any script
	MaxReplies = 5 // of most; shares have more
)

// Args are the arguments of a script for one key; each script uses the first
// Script.Args of them.
type Args [maxArgs]int64
