package remote

import (
	"crypto/fips140"
	"crypto/sha1"
	"encoding/hex"
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
	Name, Source  string
	Args, Replies int
	word          any // its SHA-1 in hexadecimal, as EVALSHA takes it
}

// NewScript makes a script.
func NewScript(name, source string, args, replies int) *Script {
	var sum [sha1.Size]byte
	fips140.WithoutEnforcement(func() { sum = sha1.Sum([]byte(source)) }) // the name of a script, not a secret
	return &Script{name, source, args, replies, hex.EncodeToString(sum[:])}
}

// Hash is the word by which EVALSHA names the script.
func (s *Script) Hash() string { return s.word.(string) }

// The sizes of scripts.
const (
	maxArgs    = 7 // of any script
	MaxReplies = 5 // of most; shares have more
)

// Args are the arguments of a script for one key; each script uses the first
// Script.Args of them.
type Args [maxArgs]int64
