package rpckey_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func TestMethods(t *testing.T) {
	for method, service := range map[string]string{
		"/package.Service/Method":          "package.Service",
		"/Service/Method":                  "Service",
		"/a/b/c":                           "a/b",
		"":                                 "",
		"/":                                "",
		"//":                               "",
		"//Method":                         "",
		"/Service":                         "",
		"/Service/":                        "",
		"Service/Method":                   "",
		"/s/" + strings.Repeat("m", 2<<10): "",
		"/s/m\n":                           "",
		"/s\x00/m":                         "",
		"/s/\xff":                          "",
		"/s /m":                            "",
	} {
		full, fullErr := rpckey.FullMethod()(t.Context(), method)
		got, err := rpckey.Service()(t.Context(), method)
		if service == "" {
			requireNoKey(t, full, fullErr)
			requireNoKey(t, got, err)
			continue
		}
		require.NoError(t, fullErr)
		require.Equal(t, method, full)
		require.NoError(t, err)
		require.Equal(t, service, got)
	}
}

// A service and a user of its name have one key, as two headers have; joined alone they do not.
func TestServiceAndAUserOfItsName(t *testing.T) {
	const method = "/shop.Orders/Get"
	user := keyfunc.Identity("shop.Orders")
	service, err := rpckey.Service()(t.Context(), method)
	require.NoError(t, err)
	require.Equal(t, user, service)
	apart, err := rpckey.Join(rpckey.Service())(t.Context(), method)
	require.NoError(t, err)
	require.NotEqual(t, user, apart)
}
