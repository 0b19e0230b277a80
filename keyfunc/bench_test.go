package keyfunc_test

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/keyfunc"
)

func BenchmarkHTTP(b *testing.B) {
	for _, w := range works() {
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.key(w.r)
			}
		})
	}
}

// BenchmarkTrusted has as many prefixes as a content delivery network.
func BenchmarkTrusted(b *testing.B) {
	trusted := prefixes()
	for i := range 500 {
		trusted = append(trusted, prefixes("10."+[]string{"0", "64", "128", "192"}[i%4]+"."+string(rune('0'+i%10))+".0/25")...)
		trusted = append(trusted, prefixes("2001:db8:"+string(rune('a'+i%6))+string(rune('0'+i/50))+"::/48")...)
	}
	key := keyfunc.ClientIP(trusted...)
	r := served("10.0.0.1:4711", xff, "203.0.113.7, 10.64.1.1")
	b.ReportAllocs()
	for b.Loop() {
		key(r)
	}
}

// BenchmarkHostile is the most that a header can cost.
func BenchmarkHostile(b *testing.B) {
	for _, w := range []work{
		{"hops", keyfunc.ClientIP(ours...), served("10.0.0.1:1", xff, strings.Repeat("10.0.0.2,", 10_000)+"10.0.0.2"), 0},
		{"hops-padded", keyfunc.ClientIP(ours...), served("10.0.0.1:1", xff, strings.Repeat(strings.Repeat(" ", 110)+"10.0.0.2,", 10_000)+"10.0.0.2"), 0},
		{"no-comma", keyfunc.ClientIP(ours...), served("10.0.0.1:1", xff, strings.Repeat("1", 64<<10)), 0},
		{"Forwarded", behind("Forwarded", ours...), served("10.0.0.1:1", "Forwarded", strings.Repeat("for=10.0.0.2,", 62)+"for=10.0.0.2"), 0},
		{"Forwarded-escapes", behind("Forwarded", ours...), served("10.0.0.1:1", "Forwarded", `for="`+strings.Repeat(`\a`, 4000)+`"`), 0},
		{"Forwarded-lines", behind("Forwarded", ours...), served("10.0.0.1:1", "Forwarded", strings.Split(strings.Repeat("for=10.0.0.2;x="+strings.Repeat("a", 110)+",", 63)+"for=10.0.0.2", ",")...), 0},
		{"header-64KiB", keyfunc.Header("X-User"), request("10.0.0.1:1", "X-User", strings.Repeat("1", 64<<10)), 0},
	} {
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w.key(w.r)
			}
		})
	}
}
