package algo_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestDecisionNames(t *testing.T) {
	require.Equal(t, "quota", algo.Quota.String())
	require.Equal(t, "deny-cache", algo.SourceDenyCache.String())
	require.Equal(t, "canceled", algo.Canceled.String())
	require.Equal(t, "unknown", algo.Reason(200).String())
}

// Only decisions of limits that apply to the request are shown to clients.
func ExampleDecision_InForce() {
	limit := algo.Must(algo.NewTokenBucket(algo.PerHour(5)))
	for _, l := range []algo.Limiter{limit, algo.Shadow(limit), algo.Unlimited()} {
		lease, _ := l.Acquire(context.Background(), "alice", 1)
		fmt.Println(lease.Source, lease.InForce())
	}
	// Output:
	// local true
	// trial false
	// off false
}

// An outcome says whether the work succeeded, and apart from that whether its duration counts.
func ExampleOutcome() {
	stream := algo.Failed | algo.Untimed
	fmt.Println(stream, stream.Result() == algo.Failed, stream.Timed())
	// Output: failed, untimed true false
}
