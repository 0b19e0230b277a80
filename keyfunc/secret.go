package keyfunc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
	"sync"

	"github.com/sluice-go/sluice/internal/keytext"
)

// Secret is a header that holds a credential, such as an API key, so that the
// credential itself reaches neither the limiter's store nor a log. The key is
// "~secret:" and 32 hexadecimal digits: HMAC-SHA-256 (RFC 2104) of the value
// under the pepper, cut to 128 bits. The name of the header is not part of it.
//
// The pepper is a secret of this service, the same on every instance; 16
// random bytes or more. With it, guesses can be tested against stored keys. A
// new pepper gives every credential a new key, with a full limit.
//
// In Authorization and Proxy-Authorization, the case of the scheme and the
// spaces after it do not matter (RFC 9110 section 11.4). Otherwise two
// spellings of a credential are two keys: where the check of the credential is
// more lenient than that, use [Context] behind it. A key does not mean that
// the credential is valid.
//
// Absent, repeated, empty and over-long headers are [ErrNoKey] as with
// [Header]. It panics if the name is not a header name or the pepper is empty.
func Secret(header string, pepper []byte) HTTP {
	requireHeader("Secret", header)
	require(len(pepper) > 0, "Secret", "the pepper is empty")
	header = http.CanonicalHeaderKey(header)
	err := noKey("header %q is absent, repeated or too long", header)
	schemed := header == "Authorization" || header == "Proxy-Authorization"
	macs := newMacs(pepper)
	return func(r *http.Request) (string, error) {
		values := r.Header[header]
		if len(values) != 1 || values[0] == "" || len(values[0]) > keytext.MaxValue {
			return "", err
		}
		v := values[0]
		if schemed {
			v = normalizeScheme(v)
		}
		return macs.key(v), nil
	}
}

// normalizeScheme writes credentials with the scheme in lower case, followed by
// one space.
func normalizeScheme(credentials string) string {
	scheme, rest, _ := strings.Cut(credentials, " ")
	return strings.ToLower(scheme) + " " + strings.Trim(rest, " \t")
}

// macs keeps keyed hash states, because making one costs two hash blocks.
type macs struct{ pool sync.Pool }

type mac struct {
	hash hash.Hash
	buf  []byte
}

func newMacs(pepper []byte) *macs {
	pepper = append([]byte(nil), pepper...) // the caller may wipe its copy
	return &macs{pool: sync.Pool{New: func() any {
		return &mac{hash: hmac.New(sha256.New, pepper)}
	}}}
}

func (m *macs) key(v string) string {
	h := m.pool.Get().(*mac)
	defer m.pool.Put(h)
	h.hash.Reset()
	h.buf = append(h.buf[:0], v...)
	h.hash.Write(h.buf)
	clear(h.buf) // keep no credential in the pool
	h.buf = h.hash.Sum(h.buf[:0])
	var text [len("~secret:") + 32]byte
	copy(text[:], "~secret:")
	hex.Encode(text[len("~secret:"):], h.buf[:16])
	return string(text[:])
}
