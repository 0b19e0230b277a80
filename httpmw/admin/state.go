package admin

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// state is the data that the page requests every second.
type state struct {
	Title   string `json:"title"`
	Boot    int64  `json:"boot"` // changes when the process does
	Time    int64  `json:"time"` // Unix time in ms
	Actions bool   `json:"actions"`
	// The columns hold the seconds from From until before To.
	From     uint32        `json:"from"`
	To       uint32        `json:"to"`
	Policies []policyState `json:"policies"`
	// Requests are admitted and denied requests, each counted once; null if the service
	// does not count them.
	Requests  map[string][]uint32 `json:"requests"`
	Top       []topState          `json:"top"`
	Adaptive  []adaptState        `json:"adaptive"`
	Process   *processState       `json:"process"`
	Stores    []storeState        `json:"stores"`
	Blocks    []blockState        `json:"blocks"`
	Marks     []markState         `json:"marks"`
	Decisions []decisionText      `json:"decisions"`
}

type policyState struct {
	Name       string              `json:"name"` // empty: all that have no place of their own
	Registered bool                `json:"registered"`
	Kind       string              `json:"kind"`
	Text       string              `json:"text"` // of the configuration, or what was learned
	Limit      *limitState         `json:"limit"`
	On         *bool               `json:"on"`      // nil: it has no switch
	Until      int64               `json:"until"`   // of a switch that is off: Unix time in ms; 0: without end
	WhyOff     string              `json:"why_off"` // of a switch that is off
	Off        bool                `json:"off"`     // it denies nothing although it is on: a trial, or no rule
	Table      *tableState         `json:"table"`
	Can        []string            `json:"can"`
	Identity   []string            `json:"identity"` // names of a caller; none: its key
	Scopes     scopes              `json:"scopes"`   // of the actions
	Blocked    int                 `json:"blocked"`  // by this page
	Columns    map[string][]uint32 `json:"columns"`  // without those that are 0 throughout
}

type limitState struct {
	Quota  int64   `json:"quota"`
	Window seconds `json:"window"`
	Unit   string  `json:"unit"`
}

type topState struct {
	Policy string `json:"policy"`
	Hash   string `json:"hash"`
	Key    string `json:"key"`   // empty: not known, or not to be shown
	Most   uint64 `json:"most"`  // it was limited so often at most
	Least  uint64 `json:"least"` // and so often at least
	Trial  bool   `json:"trial"` // by a limit on trial, which denied nothing
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
		Decisions: []decisionText{}, Blocks: []blockState{}, Marks: []markState{},
	}
	s.addPolicies(a, c)
	s.Requests = a.requestColumns(s)
	s.addTop(c, a.top.most(topShown, now), false)
	s.addTop(c, a.trials.most(topShown, now), true)
	for _, t := range a.recent.all() {
		text := textOf(&t)
		text.Key = c.keyText(t.event.Policy, t.event.KeyHash)
		s.Decisions = append(s.Decisions, text)
	}
	s.addBlocks(c)
	s.addMarks(&a.marks)
	s.addAdaptive(c)
	for i := range c.stores {
		s.Stores = append(s.Stores, c.stores[i].state(s.From, s.To))
	}
	return s
}

func (s *state) addTop(c *config, most []counted, trial bool) {
	for _, t := range most {
		s.Top = append(s.Top, topState{t.policy.name, hashText(t.hash), c.keyText(t.policy.name, t.hash), t.n, t.n - t.over, trial})
	}
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
		Name: p.name, Registered: true, Text: cmp.Or(learned(p.limiter), p.text), Table: p.table(), Kind: kindOfLimiter(p.limiter), Can: []string{"why"},
		Columns: counts.state(s), Scopes: p.can.scopes, Identity: []string{}, Blocked: len(p.blocks.all()),
	}
	if p.identity.key != nil {
		st.Identity = p.identity.parts
	}
	if d := algo.About(p.limiter); d.Quota > 0 {
		st.Limit = &limitState{d.Quota, seconds(d.Window), d.Unit.String()}
	}
	if p.can.reset != nil {
		st.Can = append(st.Can, "reset")
	}
	if p.can.block != nil {
		st.Can = append(st.Can, "block")
	}
	if p.can.unblock != nil {
		st.Can = append(st.Can, "unblock")
	}
	if p.can.adjust != nil {
		st.Can = append(st.Can, "adjust")
	}
	st.Off = algo.About(p.limiter).Off
	if p.can.onOff != nil {
		st.Can = append(st.Can, "switch")
		off, until, why := p.can.onOff.SwitchedOff()
		on := !off
		st.On, st.Until, st.WhyOff = &on, max(until.UnixMilli(), 0), why
		st.Off = st.Off && on
	}
	return st
}

// blockState is a block that was set through this page, or another limit of a key.
type blockState struct {
	Policy string `json:"policy"`
	Limit  string `json:"limit"` // empty: the key is blocked
	Hash   string `json:"hash"`
	Key    string `json:"key"`
	By     string `json:"by"`
	Note   string `json:"note"`
	Scope  string `json:"scope"`
	Since  int64  `json:"since"` // Unix time in ms; 0: not known
	Until  int64  `json:"until"`
}

func (s *state) addBlocks(c *config) {
	for i := range c.policies {
		p := &c.policies[i]
		for _, b := range p.blocks.all() {
			st := blockState{
				Policy: p.name, Hash: hashText(b.hash), By: b.by, Note: b.note,
				Scope: p.can.scopes.Block, Since: b.since.UnixMilli(), Until: b.until.UnixMilli(),
			}
			if c.clear {
				st.Key = b.key
			}
			s.Blocks = append(s.Blocks, st)
		}
		if p.can.adjust != nil {
			s.addAdjusted(c, p)
		}
	}
}

// addAdjusted adds the keys of a policy that have another limit.
func (s *state) addAdjusted(c *config, p *policy) {
	all := p.can.adjust.Adjusted()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		t := all[key]
		st := blockState{
			Policy: p.name, Limit: t.Limit.String(), Hash: hashText(keyfunc.Hash(key)), Note: t.Reason,
			Scope: p.can.scopes.Adjust, Until: t.Until.UnixMilli(),
		}
		if c.clear {
			st.Key = key
		}
		s.Blocks = append(s.Blocks, st)
	}
}

// kindOfLimiter names a limiter by its algorithm, "token-bucket", or else by its type.
func kindOfLimiter(l algo.Limiter) string {
	if c := controlled(l); c != nil {
		l = c.limiter
	}
	for one := range algo.Walk(l) {
		if r, ok := one.(*algo.RateLimiter); ok && r.Spec().Algorithm != "" {
			return r.Spec().Algorithm
		}
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", l), "*")
}

// columnNames are the columns of a series as the page knows them.
var columnNames = [columns]string{
	admitted: kindNames[admitted], queued: kindNames[queued], shadowed: kindNames[shadowed],
	denied: kindNames[denied], blocked: kindNames[blocked], failed: kindNames[failed],
	fromRemote: "remote", fromDenyCache: "deny-cache", fromBlock: "block", fromFallback: "fallback", remoteWait: "remote-us",
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
