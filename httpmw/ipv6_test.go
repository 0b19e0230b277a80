package httpmw_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/keyfunc"
)

// TestM2_IPv6Prefixes: limits on wider prefixes bound the spending of the holder of a
// /48 or a /32, and its number of places in the table of addresses, while all others are
// served. The widest limit is asked first, so its denials take no place behind it.
func TestM2_IPv6Prefixes(t *testing.T) {
	for name, attacker := range map[string]func(i int) string{
		"of a /48": func(i int) string { return fmt.Sprintf("[2001:db8:1:%x::1]:1", i%(1<<16)) },
		"of a /32": func(i int) string { return fmt.Sprintf("[2001:db8:%x:%x::1]:1", i%(1<<16), i>>16%(1<<16)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			const perAddress, perSite, perProvider = 5, 50, 500 // each a minute
			addresses := bucket(t, algo.PerMinute(perAddress), algo.MaxKeys(1<<14))
			sites, providers := bucket(t, algo.PerMinute(perSite)), bucket(t, algo.PerMinute(perProvider))
			prefix := func(bits int) keyfunc.HTTP { return algo.Must(keyfunc.IPConfig{IPv6Bits: bits}.HTTP()) }
			h := httpmw.Limits([]httpmw.Policy{
				{Name: "provider", Limiter: providers, Key: prefix(32)},
				{Name: "site", Limiter: sites, Key: prefix(48)},
				{Name: "address", Limiter: addresses, Key: keyfunc.ClientIP()},
			})(ok)
			ask := func(from string) bool {
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r.RemoteAddr = from
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				return w.Code == http.StatusOK
			}
			admitted, honest, served := 0, 0, 0
			start := time.Now()
			for i := range cases.Count(40_000, 2_400_000) {
				if ask(attacker(i)) {
					admitted++
				}
				if i%200 != 0 {
					continue
				}
				time.Sleep(10 * time.Millisecond) // 20 000 new keys a second
				honest += 2
				if ask(fmt.Sprintf("[2a00:%x:7:1::1]:1", i/200)) {
					served++
				}
				if ask(fmt.Sprintf("198.51.%d.%d:1", i/200>>8&255, i/200&255)) {
					served++
				}
			}
			most := perProvider + int(time.Since(start).Minutes()*perProvider) + 1
			if name == "of a /48" {
				most = perSite + int(time.Since(start).Minutes()*perSite) + 1
			}
			t.Logf("attacker %s: %d admitted (bound %d), %d places; %d of %d others served", name, admitted, most, addresses.Stats().Live, served, honest)
			require.LessOrEqual(t, admitted, most)
			require.LessOrEqual(t, addresses.Stats().Live, most+honest)
			require.Zero(t, addresses.Stats().Overflowed)
			require.GreaterOrEqual(t, float64(served), .999*float64(honest))
		})
	}
}
