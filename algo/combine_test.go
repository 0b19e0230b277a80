package algo_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
)

func TestCombinedDecision(t *testing.T) {
	type ds = []algo.Decision
	roomy := algo.Decision{Allowed: true, Limit: 100, Remaining: 90, NextAfter: 1, ResetAfter: 9}
	tight := algo.Decision{Allowed: true, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 5}
	late := algo.Decision{Allowed: true, Limit: 50, Remaining: 50, Delay: 7}
	quota := algo.Decision{Reason: algo.Quota, Limit: 20, Remaining: 2, RetryAfter: 40, NextAfter: 4, ResetAfter: 60, Source: algo.SourceRemote}
	overload := algo.Decision{Reason: algo.Overload, Limit: 8, RetryAfter: 30, NextAfter: 30}
	never := algo.Decision{Reason: algo.Never, Limit: 4, Remaining: 4, RetryAfter: algo.Forever}
	off := algo.Decision{Allowed: true, Source: algo.SourceOff}
	shadowed := algo.Decision{Allowed: true, Source: algo.SourceTrial, Trial: algo.Quota, Limit: 5, RetryAfter: 70, ResetAfter: 70}

	in(t, map[string]struct {
		parts ds
		want  algo.Decision
	}{
		"the tightest":                   {ds{roomy, tight}, algo.Decision{Allowed: true, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 9}},
		"the longest delay":              {ds{late, tight, roomy}, algo.Decision{Allowed: true, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 9, Delay: 7}},
		"equally tight":                  {ds{tight, {Allowed: true, Limit: 3, Remaining: 3}}, algo.Decision{Allowed: true, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 5}},
		"of those that denied":           {ds{tight, late, quota}, algo.Decision{Reason: algo.Quota, Limit: 20, Remaining: 2, RetryAfter: 40, NextAfter: 4, ResetAfter: 60, Source: algo.SourceRemote}},
		"overload over quota":            {ds{quota, overload}, algo.Decision{Reason: algo.Overload, Limit: 8, RetryAfter: 40, NextAfter: 30, ResetAfter: 60}},
		"never over overload":            {ds{never, overload, quota}, algo.Decision{Reason: algo.Never, Limit: 4, Remaining: 4, RetryAfter: algo.Forever, ResetAfter: 60}},
		"a switched-off limit is absent": {ds{off, tight}, tight},
		"so is an unknown one":           {ds{{Allowed: true}, tight}, tight},
		"all off":                        {ds{off, off}, off},
		"a shadow shows":                 {ds{tight, shadowed}, algo.Decision{Allowed: true, Trial: algo.Quota, Limit: 10, Remaining: 3, NextAfter: 2, ResetAfter: 5}},
		"a shadow denies none":           {ds{shadowed, quota}, algo.Decision{Reason: algo.Quota, Trial: algo.Quota, Limit: 20, Remaining: 2, RetryAfter: 40, NextAfter: 4, ResetAfter: 60, Source: algo.SourceRemote}},
	}, func(t *testing.T, c struct {
		parts ds
		want  algo.Decision
	}) {
		var reqs []algo.Request
		for _, d := range c.parts {
			reqs = append(reqs, algo.Request{Limiter: saying(d), N: 1})
		}
		lease := acquireAll(t, reqs...)
		require.Equal(t, c.want, lease.Decision)
		require.Len(t, lease.Parts(), len(c.parts))
		for i, p := range lease.Parts() {
			if c.parts[i].Source != algo.SourceTrial || lease.Allowed {
				require.Equal(t, c.parts[i].Allowed, p.Allowed)
			}
		}
	})
}
