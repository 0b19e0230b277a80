package service

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// answer is the response: decisions has one for each descriptor with a limit,
// in order.
func answer(all []asked, decisions []algo.Decision, headers config.Headers) *rls.RateLimitResponse {
	r := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}
	var told fields
	quotas, spent := 0, 0
	for i := range all {
		a := &all[i]
		if a.limit == nil {
			s := &rls.RateLimitResponse_DescriptorStatus{Code: rls.RateLimitResponse_OK}
			if a.node != nil && a.node.Unlimited {
				s.LimitRemaining = math.MaxUint32
			}
			r.Statuses = append(r.Statuses, s)
			continue
		}
		d := &decisions[0]
		decisions = decisions[1:]
		if d.ResetAfter == algo.Forever { // the protocol has no word for it
			d.ResetAfter = 0
		}
		s := statusOf(a.limit, d)
		switch {
		case a.limit.quota:
			quotas++
			if d.Trial != algo.Admitted {
				s.Code = rls.RateLimitResponse_OVER_LIMIT
				spent++
			}
		case s.Code == rls.RateLimitResponse_OVER_LIMIT:
			r.OverallCode = s.Code
		}
		r.Statuses = append(r.Statuses, s)
		told.add(a.limit, d)
	}
	if quotas > 0 && spent == quotas {
		r.OverallCode = rls.RateLimitResponse_OVER_LIMIT
	}
	r.ResponseHeadersToAdd = told.headers(headers)
	return r
}

func statusOf(l *limit, d *algo.Decision) *rls.RateLimitResponse_DescriptorStatus {
	s := &rls.RateLimitResponse_DescriptorStatus{
		Code:               rls.RateLimitResponse_OK,
		CurrentLimit:       l.current(),
		LimitRemaining:     uint32(min(max(d.Remaining, 0), math.MaxUint32)),
		DurationUntilReset: durationpb.New(d.ResetAfter),
	}
	if !d.Allowed {
		s.Code = rls.RateLimitResponse_OVER_LIMIT
	}
	return s
}

// units of the rates that have one. The rate of "5/15m" has none.
var units = map[time.Duration]rls.RateLimitResponse_RateLimit_Unit{
	time.Second: rls.RateLimitResponse_RateLimit_SECOND,
	time.Minute: rls.RateLimitResponse_RateLimit_MINUTE,
	time.Hour:   rls.RateLimitResponse_RateLimit_HOUR,
	day:         rls.RateLimitResponse_RateLimit_DAY,
	7 * day:     rls.RateLimitResponse_RateLimit_WEEK,
	30 * day:    rls.RateLimitResponse_RateLimit_MONTH,
	365 * day:   rls.RateLimitResponse_RateLimit_YEAR,
}

// current is the limit in the terms of the protocol: the rate, whatever the burst.
func (l *limit) current() *rls.RateLimitResponse_RateLimit {
	return &rls.RateLimitResponse_RateLimit{
		Name:            l.name,
		RequestsPerUnit: uint32(min(l.rate.Count, math.MaxUint32)),
		Unit:            units[l.rate.Period],
	}
}

// fields collects the RateLimit fields of draft-ietf-httpapi-ratelimit-headers
// and Retry-After.
type fields struct {
	items []item
	retry time.Duration
	never bool
}

type item struct {
	limit *limit
	d     *algo.Decision
}

// add notes a decision. Of several under one name the tightest counts, since a
// name is in a field once. Denials of a limit on trial are not reported.
func (f *fields) add(l *limit, d *algo.Decision) {
	if !d.Allowed {
		f.retry = max(f.retry, d.RetryAfter)
		f.never = f.never || d.RetryAfter == algo.Forever
	}
	if d.Source == algo.SourceTrial || d.Source == algo.SourceOff {
		return
	}
	for i := range f.items {
		if f.items[i].limit.name == l.name {
			if d.Remaining < f.items[i].d.Remaining {
				f.items[i] = item{l, d}
			}
			return
		}
	}
	f.items = append(f.items, item{l, d})
}

// headers are the fields that a domain wants.
func (f *fields) headers(want config.Headers) headerList {
	var all headerList
	if want.IETF {
		f.ietf(&all)
	} else {
		f.tightest(&all, want)
	}
	return all
}

type headerList []*core.HeaderValue

func (l *headerList) add(key, value string) {
	if key != "" && value != "" {
		*l = append(*l, &core.HeaderValue{Key: key, Value: value})
	}
}

func (f *fields) ietf(all *headerList) {
	var policies, limits []string
	for _, it := range f.items {
		promise := algo.About(it.limit.limiter)
		if promise.Quota == 0 {
			continue
		}
		policies = append(policies, fmt.Sprintf("%q;q=%d;w=%d", it.limit.name, promise.Quota, seconds(promise.Window)))
		state := fmt.Sprintf("%q;r=%d", it.limit.name, it.d.Remaining)
		if it.d.Remaining < promise.Quota && it.d.NextAfter > 0 {
			state += fmt.Sprintf(";t=%d", seconds(it.d.NextAfter))
		}
		limits = append(limits, state)
	}
	all.add("ratelimit-policy", strings.Join(policies, ", "))
	all.add("ratelimit", strings.Join(limits, ", "))
	if f.retry > 0 && !f.never {
		all.add("retry-after", fmt.Sprint(max(1, seconds(f.retry))))
	}
}

// tightest returns the limit with the least remaining, by the names that the domain
// has for it.
func (f *fields) tightest(all *headerList, names config.Headers) {
	if len(f.items) == 0 {
		return
	}
	least := slices.MinFunc(f.items, func(a, b item) int { return cmp.Compare(a.d.Remaining, b.d.Remaining) })
	all.add(names.Limit, fmt.Sprint(least.d.Limit))
	all.add(names.Remaining, fmt.Sprint(least.d.Remaining))
	all.add(names.Reset, fmt.Sprint(seconds(least.d.ResetAfter)))
}

// seconds rounds up to whole seconds.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
