package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// state is what the page asks for every second.
type state struct {
	Title   string `json:"title"`
	Boot    int64  `json:"boot"` // changes when the process does
	Time    int64  `json:"time"` // Unix time in ms
	Actions bool   `json:"actions"`
	// The columns hold the seconds from From until before To.
	From      uint32         `json:"from"`
	To        uint32         `json:"to"`
	Policies  []policyState  `json:"policies"`
	Top       []topState     `json:"top"`
	Adaptive  []adaptState   `json:"adaptive"`
	Process   *processState  `json:"process"`
	Stores    []storeState   `json:"stores"`
	Decisions []decisionText `json:"decisions"`
}

type policyState struct {
	Name       string              `json:"name"` // empty: all that have no place of their own
	Registered bool                `json:"registered"`
	Kind       string              `json:"kind"`
	Limit      *limitState         `json:"limit"`
	On         *bool               `json:"on"` // nil: it has no switch
	Can        []string            `json:"can"`
	Scope      string              `json:"scope"`   // of a block
	Blocked    int                 `json:"blocked"` // in this process
	Columns    map[string][]uint32 `json:"columns"` // without those that are 0 throughout
}

type limitState struct {
	Quota  int64   `json:"quota"`
	Window seconds `json:"window"`
	Unit   string  `json:"unit"`
}

type topState struct {
	Policy string `json:"policy"`
	Hash   string `json:"hash"`
	Most   uint64 `json:"most"`  // it was limited so often at most
	Least  uint64 `json:"least"` // and so often at least
}

const topShown = 10

// serveState answers the changes since the second that the caller has
// already, up to the last one that is over.
func (a *Admin) serveState(w http.ResponseWriter, r *http.Request) {
	c := a.config.Load()
	if !reading(w, r) || !a.mayRead(w, r, c) {
		return
	}
	since, _ := strconv.ParseUint(r.URL.Query().Get("since"), 10, 32)
	answer(w, http.StatusOK, a.state(c, uint32(since), time.Now()))
}

func (a *Admin) state(c *config, since uint32, at time.Time) *state {
	now := a.second(at)
	a.sample(now)
	from := max(since, 1)
	if now > span {
		from = max(from, now-span)
	}
	s := &state{
		Title: c.title, Boot: a.start.UnixNano() / int64(time.Millisecond), Time: at.UnixMilli(),
		Actions: c.act != nil, From: min(from, now), To: now,
		Policies: []policyState{}, Top: []topState{}, Adaptive: []adaptState{}, Stores: []storeState{},
		Decisions: []decisionText{},
	}
	s.addPolicies(a, c)
	for _, t := range a.top.most(topShown, now) {
		s.Top = append(s.Top, topState{t.policy.name, hashText(t.hash), t.n, t.n - t.over})
	}
	for _, t := range a.recent.all() {
		s.Decisions = append(s.Decisions, textOf(&t))
	}
	s.addAdaptive(c)
	for i := range c.stores {
		s.Stores = append(s.Stores, c.stores[i].state(s.From, s.To))
	}
	return s
}

// addPolicies adds those that are registered, in their order, then those that
// were only heard of.
func (s *state) addPolicies(a *Admin, c *config) {
	now := s.To
	heard := a.book.all(now)
	for i := range c.policies {
		p := &c.policies[i]
		s.Policies = append(s.Policies, p.state(a.book.find(p.name, now), s))
	}
	for _, one := range heard {
		if c.policy(one.name) == nil && !one.idle(now) {
			s.Policies = append(s.Policies, policyState{Name: one.name, Can: []string{}, Columns: one.state(s)})
		}
	}
}

func (p *policy) state(counts *series, s *state) policyState {
	st := policyState{
		Name: p.name, Registered: true, Kind: kindOfLimiter(p.limiter), Can: []string{"peek"},
		Columns: counts.state(s), Scope: "everywhere",
	}
	if d, ok := algo.Describe(p.limiter); ok {
		st.Limit = &limitState{d.Quota, seconds(d.Window), d.Unit.String()}
	}
	if p.can.reset != nil {
		st.Can = append(st.Can, "reset")
	}
	if p.can.block != nil {
		st.Can = append(st.Can, "block")
	}
	if p.can.onOff != nil {
		st.Can = append(st.Can, "switch")
		on := p.can.onOff.IsOn()
		st.On = &on
	}
	if p.can.process {
		st.Scope = "process"
	}
	if controlled, ok := p.limiter.(*Controlled); ok {
		st.Blocked = controlled.Blocked()
	}
	return st
}

// kindOfLimiter names a limiter by its type, "algo.TokenBucket".
func kindOfLimiter(l algo.Limiter) string {
	if c, ok := l.(*Controlled); ok {
		l = c.limiter
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", l), "*")
}

// columnNames are the columns of a series as the page knows them.
var columnNames = [columns]string{
	admitted: kindNames[admitted], queued: kindNames[queued], shadowed: kindNames[shadowed],
	denied: kindNames[denied], failed: kindNames[failed],
	fromRemote: "remote", fromDenyCache: "deny-cache", fromBlock: "block", fromFallback: "fallback",
}

func (s *series) state(of *state) map[string][]uint32 {
	all := map[string][]uint32{}
	for i, name := range columnNames {
		counts := s.read(i, of.From, of.To)
		for _, n := range counts {
			if n > 0 {
				all[name] = counts
				break
			}
		}
	}
	return all
}

// seconds is a duration as the page gets it: in seconds, null for ever.
type seconds time.Duration

// MarshalJSON writes a number, or null.
func (s seconds) MarshalJSON() ([]byte, error) {
	if time.Duration(s) == algo.Forever {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// everybody is the hash of the key of a limit that does not tell callers apart.
var everybody = func() uint64 {
	key, _ := keyfunc.Global()(nil)
	return keyfunc.Hash(key)
}()

// hashText writes the hash of a key, empty if there is no key.
func hashText(h uint64) string {
	switch h {
	case 0:
		return ""
	case everybody:
		return "everybody"
	}
	return fmt.Sprintf("%016x", h)
}
