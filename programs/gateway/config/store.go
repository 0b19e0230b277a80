package config

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// The kinds of stores.
const (
	Local = "local"
	Redis = "redis"
)

// Store says where limits keep debts.
type Store struct {
	Kind      string
	Addresses []string // of Redis; several mean a cluster, or with Sentinel the sentinels
	Sentinel  string   // the name of the primary that sentinels watch; empty: no sentinels
	Username  string
	Password  Secret // where the password lies
	TLS       bool
	Prefix    string // of the keys; empty: sluice- and the name of the program
	Timeout   time.Duration
	Fallback  string // local, allow or deny
	Instances int    // 0: counted in Redis
	Blocks    int64  // units that all instances together may admit above a limit, for speed; 0: none
}

func (s *Store) read(v value) {
	v.fields(
		field{name: "addresses", required: true, read: func(v value) {
			s.Addresses = nil
			for _, item := range v.items() {
				s.Addresses = append(s.Addresses, item.address())
			}
		}},
		field{name: "sentinel", read: func(v value) { s.Sentinel = v.text() }},
		field{name: "username", read: func(v value) { s.Username = v.text() }},
		field{name: "password", read: func(v value) { s.Password.read(v) }},
		field{name: "tls", read: func(v value) { s.TLS = v.boolean() }},
		field{name: "prefix", read: func(v value) { s.Prefix = v.text() }},
		field{name: "timeout", read: func(v value) { s.Timeout = v.duration(time.Millisecond, time.Minute) }},
		field{name: "fallback", read: func(v value) { s.Fallback = v.oneOf("local", "allow", "deny") }},
		field{name: "blocks", read: func(v value) { s.Blocks = v.whole(1, 1<<31) }},
		field{name: "instances", read: func(v value) { s.Instances = int(v.whole(1, 1<<20)) }},
	)
}

// Snapshot is a file with the debts of the keys of local limits, read at the start and
// written periodically and at the end.
type Snapshot struct {
	File  string // empty: none
	Every time.Duration
}

func (s *Snapshot) read(v value) {
	s.Every = time.Minute
	v.fields(
		field{name: "file", required: true, read: func(v value) { s.File = v.text() }},
		field{name: "every", read: func(v value) { s.Every = v.duration(time.Second, 24*time.Hour) }},
	)
}

// Same reports whether two stores are one. (A slice keeps them from ==.)
func (s Store) Same(t Store) bool { return fmt.Sprint(s) == fmt.Sprint(t) }

// Secret says where a secret lies; it is never in the file itself. The zero
// value is no secret.
type Secret struct{ Env, File string }

func (s *Secret) read(v value) {
	v.fields(
		field{name: "env", read: func(v value) { s.Env = v.text() }},
		field{name: "file", read: func(v value) { s.File = v.text() }},
	)
	if v.isMapping() && (s.Env == "") == (s.File == "") {
		v.fail("wants one of env and file")
	}
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// Read fetches the secret, nil if there is none.
func (s Secret) Read() ([]byte, error) {
	if s.File != "" {
		b, err := os.ReadFile(s.File)
		b = bytes.TrimRight(b, "\r\n") // which editors add
		if err == nil && len(b) == 0 {
			err = fmt.Errorf("%s is empty", s.File)
		}
		return b, err
	}
	if s.Env != "" {
		if v := os.Getenv(s.Env); v != "" {
			return []byte(v), nil
		}
		return nil, fmt.Errorf("the environment variable %s is not set", s.Env)
	}
	return nil, nil
}

// SecretsNow identifies the contents of the secrets' files. It must not be shown: secrets
// could be guessed by it. The store and TLS look at their files by themselves.
func (f *File) SecretsNow() string {
	sum := sha256.New()
	for _, path := range []string{f.Pepper.File, f.JWT.Keys.File, f.AdminToken.File} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(sum, "%s%v%s", part(path), err, part(string(text)))
	}
	return string(sum.Sum(nil))
}

// RandomPepper is for a process that shares no keys with others.
func RandomPepper() []byte {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails, see crypto/rand
	return b
}

// Shortened is an ID in so many bytes at most: the end of a long one is a hash.
func Shortened(id string, most int) string {
	if len(id) <= most {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return id[:most-33] + "#" + hex.EncodeToString(sum[:16])
}

// NewLimiter makes the limiter of a limit on a store, which has fewer algorithms
// than package algo.
func NewLimiter(s *distributed.Store, id string, spec algo.Spec) (algo.Limiter, error) {
	// The kind is part of the name: a name whose kind has changed starts anew, and
	// the values of the older kind are not read.
	l, err := s.Limiter(Shortened(id, 120)+"."+AlgorithmOf(spec), spec)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// AlgorithmOf is the name of the algorithm, also where the spec leaves it out.
func AlgorithmOf(spec algo.Spec) string {
	if spec.Algorithm == "" {
		return "token-bucket"
	}
	return spec.Algorithm
}
