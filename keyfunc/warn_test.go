package keyfunc_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/keyfunc"
	"github.com/stretchr/testify/require"
)

// captured collects what is logged during f, with all warnings still to come.
func captured(t *testing.T, f func()) string {
	var out bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	keyfunc.ResetWarnings()
	f()
	slog.SetDefault(before)
	return out.String()
}

func TestWarnings(t *testing.T) {
	const ignored, trustsAll = "code=keyfunc.forwarded_untrusted", "code=keyfunc.trusts_all"
	forwarded := request("192.0.2.1:1", xff, "203.0.113.7")
	for _, row := range []struct {
		name string
		do   func()
		want string // "" for silence
	}{
		{"header, nothing trusted", func() { keyOf(t, keyfunc.ClientIP(), forwarded) }, ignored},
		{"header, nothing trusted, Unix socket", func() { keyOf(t, keyfunc.ClientIP(), unixRequest("@", xff, "203.0.113.7")) }, ignored},
		{"metadata, nothing trusted", func() {
			rpcKeyOf(t, keyfunc.RPCClientIP(), call(tcp("192.0.2.1:1"), "x-forwarded-for", "203.0.113.7"), "/s/m")
		}, ignored},
		{"many times", func() {
			for range 100 {
				keyOf(t, keyfunc.ClientIP(), forwarded)
			}
		}, ignored},
		{"everything trusted", func() { config(t, keyfunc.IPConfig{TrustAll: true}) }, trustsAll},
		{"everything trusted, many times", func() {
			for range 100 {
				config(t, keyfunc.IPConfig{TrustAll: true})
			}
		}, trustsAll},
		{"no header", func() { keyOf(t, keyfunc.ClientIP(), request("192.0.2.1:1", xff)) }, ""},
		{"another header", func() { keyOf(t, keyfunc.ClientIPHeader("X-Real-IP"), forwarded) }, ""},
		{"something trusted", func() { keyOf(t, keyfunc.ClientIP(ours...), forwarded) }, ""},
		{"peer asked for", func() {
			rpcKeyOf(t, keyfunc.PeerIP(), call(tcp("192.0.2.1:1"), "x-forwarded-for", "203.0.113.7"), "/s/m")
		}, ""},
		{"counted hops", func() { keyfunc.TrustedHops(1) }, ""},
		{"wiring alone", func() { keyfunc.ClientIP() }, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := captured(t, row.do)
			if row.want == "" {
				require.Empty(t, out)
				return
			}
			require.Equal(t, 1, strings.Count(out, "\n"), out)
			require.Contains(t, out, "level=WARN")
			require.Contains(t, out, row.want)
			require.NotContains(t, out, "203.0.113.7", "nothing of the request is logged")
		})
	}
}
