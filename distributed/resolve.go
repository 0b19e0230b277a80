package distributed

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
)

// asked is the limit as the user stated it.
type asked struct {
	rate     algo.Rate
	burst    int64
	burstSet bool // false: the burst follows the rate's count
	noBurst  bool // the kind of limit has none
	maxWait  time.Duration
	slack    int64
	queue    int64
	waitSet  bool
	queueSet bool
	holders  *holders
	keyed    []algo.Option // of the local stand
}

func (a asked) theBurst() int64 {
	if a.burstSet {
		return a.burst
	}
	return a.rate.Count
}

// resolve reads the options of a limit that is of the given algorithm. Keys and
// full, which every kind takes, concern the decisions without Redis.
func resolve(algorithm string, r algo.Rate, opts []algo.Option, takes ...string) (asked, error) {
	s, err := algo.Spec{Algorithm: algorithm, Rate: r}.With(opts...)
	if err != nil {
		return asked{}, err
	}
	if err := takesOnly(s, append(takes, "MaxKeys", "OnFull")...); err != nil {
		return asked{}, err
	}
	a := asked{rate: r, maxWait: s.MaxWait, slack: s.Slack, queue: s.MaxQueue}
	a.burst, a.burstSet = s.Burst, s.Given("burst")
	a.waitSet, a.queueSet = s.Given("wait"), s.Given("queue")
	if s.MaxKeys > 0 {
		a.keyed = append(a.keyed, algo.MaxKeys(int(s.MaxKeys)))
	}
	a.keyed = append(a.keyed, algo.OnFull(s.OnFull))
	return a, nil
}

// takesOnly reports an option of s that is not among takes.
func takesOnly(s algo.Spec, takes ...string) error {
	for _, o := range s.Options() {
		if !slices.Contains(takes, o.String()) {
			return fmt.Errorf("does not take the option %s, only %s", o, strings.Join(takes, ", "))
		}
	}
	return nil
}
