package keyfunc

import "github.com/sluice-go/sluice/internal/keytext"

// Identity returns the key that [Header], [Context], [BasicUser] and their
// counterparts for gRPC make of a user name, an account or a header value, for code
// that resets, bans or configures a key by that name.
//
//	limiter.Reset(keyfunc.Identity(user.ID))
//
// Most identities are their own key; the package comment has the exceptions. ""
// means that there is no key: the identity is empty or longer than 128 KiB.
func Identity(identity string) string {
	key, _ := keytext.Value(identity)
	return key
}
