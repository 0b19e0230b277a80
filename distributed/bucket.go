package distributed

import (
	"github.com/sluice-go/sluice/algo"
)

// TokenBucket makes a limit that admits bursts and holds the rate over time,
// with the options [algo.Burst] (default: the rate's count) and [algo.MaxWait];
// see [algo.TokenBucket]. The name tells limits apart; instances that use the
// same one share the limit.
//
// Bound: in any window of length w all instances together admit at most
// Burst + rate*w units, plus rate*MaxWait, whatever their clocks: time is the
// server's. Should the server's clock step back, a key is denied for one burst
// longer at most.
//
// Accuracy: time is counted in whole microseconds, rounded so that the limit
// is never faster than asked: by at most 1 % slower below 1e4 per second and
// 10 % below 1e5. Rates go from 1 in a year to 1e6 per second.
//
// Do not use it where every instance can be given a limit of its own: a
// decision costs a round trip.
func (s *Store) TokenBucket(name string, r algo.Rate, opts ...algo.Option) (*Limiter, error) {
	return s.bucket("token bucket", name, r, opts)
}

func (s *Store) bucket(kind, name string, r algo.Rate, opts []algo.Option) (*Limiter, error) {
	a, err := resolve(kind, name, r, opts)
	if err != nil {
		return nil, err
	}
	return s.newLimiter(kind, name, a, func(a asked) (limit, error) {
		return asLimit(newGCRA(a.rate, a.theBurst(), a.maxWait))
	})
}

// asLimit keeps a nil pointer from becoming a limit that is not nil.
func asLimit[L limit](l L, err error) (limit, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}
