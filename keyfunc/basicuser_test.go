package keyfunc_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

func TestBasicUser(t *testing.T) {
	login := func(user, password string) *http.Request {
		r := request("192.0.2.1:1", xff)
		r.SetBasicAuth(user, password)
		return r
	}
	key := keyfunc.BasicUser()
	require.Equal(t, "alice", keyOf(t, key, login("alice", "1")))
	require.Equal(t, "alice", keyOf(t, key, login("alice", "2:3")))
	require.Equal(t, "~value:203.0.113.7", keyOf(t, key, login("203.0.113.7", "")))
	require.Regexp(t, "^~value#", keyOf(t, key, login(strings.Repeat("a", 200), "")))
	require.Regexp(t, "^~value#", keyOf(t, key, login("\xff", "")))

	for name, values := range map[string][]string{
		"absent":       nil,
		"other scheme": {"Bearer YTpi"},
		"not base64":   {"Basic !"},
		"no colon":     {"Basic YWI="},
		"empty name":   {"Basic OmI="},
		"repeated":     {"Basic YTpi", "Basic YTpi"},
		"too long":     {"Basic " + strings.Repeat("YWFh", 64<<10) + "OmI="},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := key(request("192.0.2.1:1", "Authorization", values...))
			requireNoKey(t, k, err)
		})
	}
}
