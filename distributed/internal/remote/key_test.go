package remote

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

func TestS1_KeysAreInjective(t *testing.T) {
	seen := map[string]string{}
	for _, limit := range []string{"a", "b", ":", "a:b", "{", "}", "a}:b", "~x", ":instances", ":probe"} {
		for _, key := range []string{
			"", "a", "b", ":a", "a:", "{a}", "a}", "}a{", "%7B", "{", "%", "~", "\x00", "\n", " ", "é", "\xff",
			fmt.Sprintf("%300d", 1), fmt.Sprintf("%300d", 2), "x}:a", "}:a",
		} {
			k := Key("p", Escape(limit), key)
			other, dup := seen[k]
			require.False(t, dup, "%q/%q and %s share %q", limit, key, other, k)
			seen[k] = fmt.Sprintf("%q/%q", limit, key)
			require.NotContains(t, tagOf(k), "{")
			require.Equal(t, slot(k), slot("{"+tagOf(k)+"}"))
			if key != "" {
				require.Equal(t, slot(k), slot(Key("p", Escape("other"), key)), "limits on one key share a slot")
			}
		}
	}
	require.NotContains(t, seen, "p:{::instances}")
	require.NotContains(t, seen, probeKey(Key("p", Escape("a"), "b")))
}

// FuzzS1_S2_Key: no two pairs of limit and key share a Redis key, and no byte of a
// key picks the slot.
func FuzzS1_S2_Key(f *testing.F) {
	f.Add("a", "b", "a", "{b}")
	f.Add("a:b", "c", "a", "b:c")
	f.Fuzz(func(t *testing.T, limit1, key1, limit2, key2 string) {
		if limit1 == "" || limit2 == "" {
			return
		}
		a, b := Key("p", Escape(limit1), key1), Key("p", Escape(limit2), key2)
		require.Equal(t, limit1 == limit2 && key1 == key2, a == b, "%q %q", a, b)
		for _, k := range []string{a, b} {
			require.Equal(t, 1, countByte(k, '{'))
			require.Equal(t, 1, countByte(k, '}'))
			require.LessOrEqual(t, len(k), 2*MaxTag+8)
			for i := range len(k) {
				require.GreaterOrEqual(t, k[i], byte(0x21))
			}
		}
	})
}

func countByte(s string, c byte) (n int) {
	for i := range len(s) {
		if s[i] == c {
			n++
		}
	}
	return n
}

func TestS2_SlotIsTheServersOwn(t *testing.T) {
	server := redistest.Start(t, "--cluster-enabled", "yes")
	for _, k := range []string{"a", "{user1000}.following", "foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}",
		Key("sluice", "per-user", "alice"), Key("sluice", "total", "")} {
		require.Equal(t, server.Do("CLUSTER", "KEYSLOT", k), int64(slot(k)), "%q", k)
	}
}
