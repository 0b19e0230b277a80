package algo_test

import (
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
