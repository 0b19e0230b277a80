package keyfunc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"net/http"
	"strings"
	"sync"

	"github.com/sluice-go/sluice/internal/keytext"
)

// Secret keys requests by a header that holds a credential, such as an API key, so
// that the credential reaches neither the limiter's store nor a log. The key is
// "~secret:" and 32 hexadecimal digits: HMAC-SHA-256 (RFC 2104) of the value
// under pepper, cut to 128 bits. The name of the header is not part of it.
//
// pepper is a secret of this service, the same on every instance; 16 random bytes
// or more. With it, guesses can be tested against stored keys. A new pepper gives
// every credential a new key, with a full limit.
//
// All spellings of a credential have one key, or none:
//
//   - repeated lines with the same credential are one line, with different ones
//     they are [ErrNoKey];
//   - in Authorization and Proxy-Authorization, the case of the scheme and the
//     spaces and tabs after it do not matter (RFC 9110 section 11.4);
//   - of Basic credentials, the decoded user and password count; invalid base64
//     is ErrNoKey;
//   - of a token that is a JWT, the decoded parts count: the last character
//     of a part may have 16 spellings that decode alike.
//
// Use [Context] behind the check of the credential instead if that is more lenient,
// or if the credentials change with each request (Digest, signatures). A key does
// not mean that the credential is valid.
//
// Absent, empty and over-long headers are [ErrNoKey] as with [Header]. It panics
// if the name is not a header name or the pepper is empty.
func Secret(header string, pepper []byte) HTTP {
	requireHeader("Secret", header)
	require(len(pepper) > 0, "Secret", "the pepper is empty")
	header = http.CanonicalHeaderKey(header)
	err := noKey("header %q is absent, repeated or too long", header)
	schemed := header == "Authorization" || header == "Proxy-Authorization"
	macs := newMacs(pepper)
	return func(r *http.Request) (string, error) {
		credential := ""
		for _, v := range r.Header[header] {
			ok := v != "" && len(v) <= keytext.MaxValue
			switch {
			case !ok:
			case schemed:
				v, ok = canonical(v)
			default:
				v = canonicalJWT(v)
			}
			if !ok || credential != "" && v != credential {
				return "", err
			}
			credential = v
		}
		if credential == "" {
			return "", err
		}
		return macs.key(credential), nil
	}
}

// canonical returns one spelling for all of credentials: the scheme in lower case,
// a space, and the decoded form of Basic credentials and of a JWT.
func canonical(credentials string) (string, bool) {
	i := strings.IndexAny(credentials, " \t")
	if i < 0 {
		return canonicalJWT(credentials), true
	}
	scheme, rest := strings.ToLower(credentials[:i]), strings.Trim(credentials[i:], " \t")
	if scheme == "basic" {
		user, ok := decode(base64.RawStdEncoding, strings.TrimRight(rest, "="))
		return scheme + " " + user, ok
	}
	return scheme + " " + canonicalJWT(rest), true
}

// canonicalJWT encodes each part of a JWT (RFC 7519, compact serialization) again, so
// that the unused bits of its last character are 0. It returns any other token
// unchanged, because two tokens that differ in these bits may be two credentials.
func canonicalJWT(token string) string {
	if dots := strings.Count(token, "."); dots != 2 && dots != 4 {
		return token
	}
	parts := strings.Split(token, ".")
	for i, part := range parts {
		decoded, ok := decode(base64.RawURLEncoding, strings.TrimRight(part, "="))
		if !ok || i == 0 && !strings.HasPrefix(strings.TrimLeft(decoded, " \t\r\n"), "{") { // no JSON object
			return token
		}
		parts[i] = base64.RawURLEncoding.EncodeToString([]byte(decoded))
	}
	return strings.Join(parts, ".")
}

func decode(e *base64.Encoding, s string) (string, bool) {
	b, err := e.DecodeString(s)
	return string(b), err == nil
}

// macs keeps keyed hash states, because making one costs two hash blocks.
type macs struct{ pool sync.Pool }

type mac struct {
	hash hash.Hash
	buf  []byte
}

// fipsKey is the minimum length of an HMAC key in FIPS 140 mode (SP 800-131A).
const fipsKey = 14

func newMacs(pepper []byte) *macs {
	pepper = append([]byte(nil), pepper...) // the caller may wipe its copy
	for len(pepper) < fipsKey {
		pepper = append(pepper, 0) // as HMAC does
	}
	return &macs{pool: sync.Pool{New: func() any {
		return &mac{hash: hmac.New(sha256.New, pepper)}
	}}}
}

// key returns the key of credential.
func (m *macs) key(credential string) string {
	sum := m.sum(credential)
	var text [32]byte
	hex.Encode(text[:], sum[:16])
	return keytext.Secret.With(string(text[:]))
}

func (m *macs) sum(v string) (sum [sha256.Size]byte) {
	h := m.pool.Get().(*mac)
	defer m.pool.Put(h)
	h.hash.Reset()
	h.buf = append(h.buf[:0], v...)
	h.hash.Write(h.buf)
	clear(h.buf) // keep no credential in the pool
	h.buf = h.hash.Sum(h.buf[:0])
	copy(sum[:], h.buf)
	return sum
}
