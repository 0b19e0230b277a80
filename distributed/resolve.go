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

// options are those of any limiter, as algo.Spec calls them and by their names.
var options = []struct{ word, name string }{
	{"burst", "Burst"}, {"wait", "MaxWait"}, {"queue", "MaxQueue"}, {"slack", "Slack"}, {"delay", "DelayAfter"},
	{"nodelay", "NoDelay"}, {"cold", "ColdFactor"}, {"cells", "Cells"}, {"offset", "Offset"}, {"aligned", "AlignedTo"},
	{"spread", "Spread"}, {"keys", "MaxKeys"}, {"full", "OnFull"},
}

// named are the names of the options with these words.
func named(words []string) string {
	var names []string
	for _, o := range options {
		if slices.Contains(words, o.word) {
			names = append(names, o.name)
		}
	}
	return strings.Join(names, ", ")
}

// resolve reads the options of a limit that is of the given algorithm. Keys and
// full, which every kind takes, concern the decisions without Redis.
func resolve(algorithm string, r algo.Rate, opts []algo.Option, takes ...string) (asked, error) {
	s, err := algo.Resolve(algorithm, r, opts...)
	if err != nil {
		return asked{}, err
	}
	takes = append(takes, "keys", "full")
	for _, o := range options {
		if s.Given(o.word) && !slices.Contains(takes, o.word) {
			return asked{}, fmt.Errorf("does not take the option %s, only %s", o.name, named(takes))
		}
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
