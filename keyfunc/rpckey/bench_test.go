package rpckey_test

import (
	"testing"

	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

func BenchmarkPeerIP(b *testing.B) {
	for name, addr := range map[string]string{"IPv4": "203.0.113.7:4711", "IPv6": "[2001:db8::1]:4711"} {
		b.Run(name, func(b *testing.B) {
			key, ctx := rpckey.PeerIP(), call(tcp(addr))
			b.ReportAllocs()
			for b.Loop() {
				key(ctx, "/s/m")
			}
		})
	}
}
