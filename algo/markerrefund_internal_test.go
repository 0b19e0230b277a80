package algo

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestMarkerSettleBeyondWhatABucketOwes: when more is charged again than a
// bucket can owe, what was cut off is not given back.
func TestMarkerSettleBeyondWhatABucketOwes(t *testing.T) {
	for name, c := range map[string]struct {
		marker Marker
		pass   Color
	}{
		"srTCM":    {must(NewSRTCM(PerSecond(1), 5, 0)), Green},
		"excess":   {must(NewSRTCM(PerSecond(1), 0, 5)), Yellow},
		"trTCM":    {must(NewTRTCM(PerSecond(1), 5, PerSecond(2), 5)), Green},
		"RFC 4115": {must(NewRFC4115(PerSecond(1), 0, PerSecond(1), 5)), Yellow},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.marker.(*marker).cells.init(settings{maxKeys: 1})
				l := FromMarker(c.marker, c.pass)
				var leases [20]Lease
				for i := range leases {
					leases[i] = admit(t, l, "", 5)
					leases[i].Settle(0)
				}
				admit(t, l, "", 5)
				for i := range leases {
					leases[i].Settle(5)
				}
				for i := range leases {
					leases[i].Release(Canceled)
				}
				kept, err := l.Acquire(background, "", 1)
				require.NoError(t, err)
				require.False(t, kept.Allowed, "5 of 5 were kept")
			})
		})
	}
}
