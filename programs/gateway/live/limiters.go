package live

import (
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/reload"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/programs/gateway/config"
)

// NewLimiters keeps limits on store, or in this process if it is nil. wrap, if it
// is not nil, puts something around each limiter that is made, such as an
// operator's switch, which then stays as long as the limiter does.
func NewLimiters(store *distributed.Store, wrap func(id string, l algo.Limiter) algo.Limiter) *reload.Limits {
	return reload.New(reload.Config{New: func(id string, spec algo.Spec) (l algo.Limiter, err error) {
		if store == nil {
			l, err = spec.New()
		} else {
			l, err = config.NewLimiter(store, id, spec)
		}
		if err == nil && wrap != nil {
			l = wrap(id, l)
		}
		return l, err
	}})
}
