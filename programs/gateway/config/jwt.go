package config

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// JWT says which tokens are accepted for keys of the kind jwt.
type JWT struct {
	Keys     Secret // where the JSON Web Key Set lies
	Issuer   string // if not empty, the iss that a token must have
	Audience string // if not empty, one of the aud that a token must have
}

func (j *JWT) read(v value) {
	v.fields(
		field{name: "keys", required: true, read: func(v value) { j.Keys.read(v) }},
		field{name: "issuer", read: func(v value) { j.Issuer = v.text() }},
		field{name: "audience", read: func(v value) { j.Audience = v.text() }},
	)
}

// Tokens verifies bearer tokens.
type Tokens struct {
	text     string // of the keys
	keys     jose.JSONWebKeySet
	retired  []retired
	expected jwt.Expected
}

// retired are keys that another set has replaced. Clients may have their tokens for a while.
type retired struct {
	keys  jose.JSONWebKeySet
	until time.Time
}

// overlap is how long the keys of a file are good after others have replaced them.
const overlap = 5 * time.Minute

// algorithms are the accepted signatures. A key serves only the algorithms of its own
// type, so a public key is never taken for a shared secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA, jose.HS256, jose.HS384, jose.HS512,
}

// Open reads the keys; nil if the file has no jwt. Keys of before, which may be nil, that
// are replaced stay good for five minutes.
func (j JWT) Open(before *Tokens) (*Tokens, error) {
	text, err := j.Keys.Read()
	if err != nil || text == nil {
		return nil, err
	}
	t := &Tokens{text: string(text), expected: jwt.Expected{Issuer: j.Issuer}}
	if j.Audience != "" {
		t.expected.AnyAudience = jwt.Audience{j.Audience}
	}
	if err := json.Unmarshal(text, &t.keys); err != nil {
		return nil, fmt.Errorf("not a JSON Web Key Set: %w", err)
	}
	if len(t.keys.Keys) == 0 {
		return nil, fmt.Errorf("the JSON Web Key Set has no keys")
	}
	if before != nil {
		t.retired = slices.DeleteFunc(slices.Clone(before.retired), func(r retired) bool { return time.Now().After(r.until) })
		if before.text != t.text {
			t.retired = append(t.retired, retired{before.keys, time.Now().Add(overlap)})
		}
	}
	return t, nil
}

// longestToken bounds the input of the parser.
const longestToken = 16 << 10

// claim is a claim of the bearer token of a request, empty if there is no token
// that is valid now, or the claim is neither a text nor a number.
func (t *Tokens) claim(r *http.Request, name string) string {
	if given, ok := r.Context().Value(givenClaims{}).(map[string]string); ok {
		return given[name]
	}
	fields := r.Header["Authorization"]
	if t == nil || len(fields) != 1 || len(fields[0]) > longestToken {
		return ""
	}
	scheme, text, _ := strings.Cut(fields[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	token, err := jwt.ParseSigned(strings.TrimSpace(text), algorithms)
	if err != nil {
		return ""
	}
	return scalar(t.claims(token)[name])
}

// claims are the claims of a token that is valid now, nil if it is not.
func (t *Tokens) claims(token *jwt.JSONWebToken) map[string]json.RawMessage {
	var registered jwt.Claims
	var all map[string]json.RawMessage
	signed := token.Claims(&t.keys, &registered, &all) == nil
	for i := 0; i < len(t.retired) && !signed; i++ {
		old := &t.retired[i]
		signed = time.Now().Before(old.until) && token.Claims(&old.keys, &registered, &all) == nil
	}
	if !signed || registered.Validate(t.expected) != nil {
		return nil
	}
	return all
}

// scalar is a text, or a number as it is written, so that it keeps its precision.
func scalar(text json.RawMessage) string {
	var value string
	var number json.Number
	if json.Unmarshal(text, &value) == nil {
		return value
	}
	if json.Unmarshal(text, &number) == nil {
		return number.String()
	}
	return ""
}

// givenClaims is the context key of claims that an operator names.
type givenClaims struct{}
