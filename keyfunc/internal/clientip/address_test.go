package clientip

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzS3_ParseAddress: the parser accepts the same texts as net/netip, except that it
// drops zones and rejects unspecified addresses.
func FuzzS3_ParseAddress(f *testing.F) {
	f.Add("203.0.113.7")
	f.Fuzz(func(t *testing.T, s string) {
		want, err := netip.ParseAddr(s)
		want = want.WithZone("").Unmap()
		got, ok := parseAddress(s)
		if err != nil || want.IsUnspecified() {
			require.False(t, ok, "%q", s)
			return
		}
		require.True(t, ok, "%q", s)
		require.Equal(t, want, got.addr(), "%q", s)
		if got.text != "" {
			require.Equal(t, want.String(), got.text, "%q", s)
		}
	})
}
