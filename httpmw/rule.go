package httpmw

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// rule is one limit of a middleware, made ready.
type rule struct {
	name    string
	limiter algo.Limiter
	key     keyfunc.HTTP
	cost    func(*http.Request) int64
	mayHold bool // an admission may hold a slot that it matters to release in time
	policy  atomic.Pointer[policyText]
	prefix  string    // of the RateLimit item: `"name";r=`
	problem [2]string // bodies of denials: of 429 and of 503
}

func newRule(p Policy) (*rule, error) {
	if p.Name == "" {
		p.Name = defaultName(p.Limiter)
	}
	if !validName(p.Name) {
		return nil, fmt.Errorf("the name is %q, want 1 to 64 of A-Z a-z 0-9 . _ -", p.Name)
	}
	r := &rule{name: p.Name, limiter: p.Limiter, key: p.Key, cost: p.Cost}
	r.prefix = `"` + p.Name + `";r=`
	r.problem = [2]string{
		problemBody(http.StatusTooManyRequests, p.Name),
		problemBody(http.StatusServiceUnavailable, p.Name),
	}
	r.mayHold = algo.OccupiesSlot(p.Limiter)
	return r, nil
}

// defaultName tells the limit, if there is one: "100-per-60s",
// "64-concurrent-requests".
func defaultName(l algo.Limiter) string {
	if d, ok := algo.Describe(l); ok && (d.Quota != unbounded || d.Unit != algo.ConcurrentRequests) {
		return d.String()
	}
	return "default"
}

func validName(s string) bool {
	if len(s) < 1 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// verdict is what to do with a request before the limiter is asked.
type verdict uint8

const (
	charge verdict = iota // ask the limiter
	pass                  // let it through, unlimited
	refuse                // deny it, it lacks a key
)

// keyless is the decision on a request that must have a key and has none.
func keyless() *algo.Decision {
	return &algo.Decision{Reason: algo.Never, RetryAfter: algo.Forever}
}

// errNegative refuses a cost that would mint.
var errNegative = fmt.Errorf("httpmw: the cost function gave a negative cost: %w", algo.ErrCost)

// weigh finds out under which key the request is charged, and how much.
func (r *rule) weigh(req *http.Request, missing MissingKey) (key string, n int64, v verdict, err error) {
	key, err = r.key(req)
	if err != nil {
		if !isNoKey(err) {
			return "", 0, charge, err
		}
		if key, v, err = missing.keyFor(req); err != nil || v != charge {
			return "", 0, v, err
		}
	}
	n = 1
	if r.cost != nil {
		if n = r.cost(req); n < 0 {
			return "", 0, charge, errNegative
		}
	}
	return key, n, charge, nil
}

func isNoKey(err error) bool { return errors.Is(err, keyfunc.ErrNoKey) }

// globalKey is what keyfunc.Global gives every request.
var globalKey, _ = keyfunc.Global()(nil)

// status is the HTTP status of a denial. What one client holds in flight is
// that client's quota; what the whole server holds is not.
func (r *rule) status(d *algo.Decision, key string) int {
	if d.Reason != algo.Overload {
		return http.StatusTooManyRequests
	}
	if key == "" || key == globalKey {
		return http.StatusServiceUnavailable
	}
	if desc, ok := algo.Describe(r.limiter); ok && desc.Unit == algo.ConcurrentRequests {
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

func (r *rule) problemOf(status int) string {
	if status == http.StatusTooManyRequests {
		return r.problem[0]
	}
	return r.problem[1]
}

// seconds rounds up to whole seconds.
func seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
