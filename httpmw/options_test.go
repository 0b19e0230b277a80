package httpmw_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
)

func TestWiring(t *testing.T) {
	var noBucket *algo.RateLimiter
	limit := func(opts ...httpmw.Option) func() {
		return func() { httpmw.Limit(admitting(), key("k"), opts...) }
	}
	for _, row := range []struct {
		message string
		wire    func()
	}{
		{"httpmw: Limit: the limiter is nil", func() { httpmw.Limit(nil, key("k")) }},
		{"httpmw: Limit: the limiter is nil", func() { httpmw.Limit(noBucket, key("k")) }},
		{"httpmw: Limit: the key function is nil", func() { httpmw.Limit(admitting(), nil) }},
		{"httpmw: middleware: the next handler is nil", func() { httpmw.Limit(admitting(), key("k"))(nil) }},
		{"httpmw: middleware: the next handler is nil", func() { httpmw.Limit(admitting(), key("k"))(http.HandlerFunc(nil)) }},
		{`httpmw: Limit: WithName: "" has 0 bytes, want 1 to 64`, limit(httpmw.WithName(""))},
		{`httpmw: Limit: WithName: "a b" has characters other than letters, digits, dot, underscore and hyphen`, limit(httpmw.WithName("a b"))},
		{`httpmw: Limit: WithName: "\"" has characters other than letters, digits, dot, underscore and hyphen`, limit(httpmw.WithName(`"`))},
		{"httpmw: Limit: WithCost: is nil", limit(httpmw.WithCost(nil))},
		{"httpmw: Limit: WithSkip: is nil", limit(httpmw.WithSkip(nil))},
		{"httpmw: Limit: WithObserver: is nil", limit(httpmw.WithObserver(nil))},
		{"httpmw: Limit: WithDenied: is nil", limit(httpmw.WithDenied(nil))},
		{"httpmw: Limit: WithDenied: is nil", limit(httpmw.WithDenied(http.HandlerFunc(nil)))},
		{"httpmw: Limit: WithRefundIf: is nil", limit(httpmw.WithRefundIf(nil))},
		{"httpmw: Limit: the zero Option is not an option", limit(httpmw.Option{})},
		{"httpmw: Limit: WithHeaders: is 99, want IETF, Legacy, LegacyEpoch or None", limit(httpmw.WithHeaders(99))},
	} {
		require.PanicsWithValue(t, row.message, row.wire)
	}
}
