package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// Rule is a limit in Redis, for all instances.
type Rule struct {
	// Limit is any limit that distributed.Store.Limiter takes, without the options
	// keys and full. A change of its algorithm forgets the debt of keys. The zero Limit is for
	// [Rules.Over]: only the keys of Overrides and Temporary have a rule.
	Limit algo.Spec `json:"limit,omitzero"`
	// Mode selects whether the rule is enforced; ModeEnforce by default. In ModeOff a rule needs no limit.
	Mode Mode `json:"mode,omitempty"`
	// Until ends Mode, by the clock of each instance; the zero time never does. Reason explains the
	// mode. See [Limiter.SwitchOff].
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`
	// Apps lists the applications that the rule applies to; all if it is empty.
	// For others the rule does not exist. See [WithApp].
	Apps []string `json:"apps,omitempty"`
	// Overrides are other limits for single keys. An override with the algorithm of
	// Limit keeps what the key has spent: of a window or a log the units, of a bucket
	// the time until it is full. Each change sends the whole rule, so give plans with
	// thousands of keys a rule each.
	Overrides map[string]algo.Spec `json:"overrides,omitempty"`
	// Temporary are limits for single keys that end by themselves. They take precedence over Overrides.
	Temporary map[string]Temporary `json:"temporary,omitempty"`
	// Version identifies a change by the microseconds of Redis' clock; see [Rules.Put].
	Version int64 `json:"-"`
}

// Temporary is a limit that ends by itself.
type Temporary struct {
	Limit  algo.Spec `json:"limit"`
	Until  time.Time `json:"until"` // by the clock of each instance; required
	Reason string    `json:"reason,omitempty"`
}

// Mode selects whether a rule is enforced.
type Mode string

// The modes.
const (
	ModeEnforce Mode = ""
	// ModeShadow decides and reports but denies nothing: a trial.
	ModeShadow Mode = "shadow"
	// ModeOff admits everything, in all instances.
	ModeOff Mode = "off"
)

// ErrNoRule reports a rule that does not exist or has been deleted. ErrRuleChanged reports a
// Put of a version that is not the one in Redis.
var (
	ErrNoRule      = errors.New("no such rule")
	ErrRuleChanged = errors.New("the rule has been changed: get it again")
)

// UnmarshalJSON reads a rule and checks it. A field that does not exist is an error.
func (r *Rule) UnmarshalJSON(data []byte) error {
	type plain Rule
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode((*plain)(r)); err != nil {
		return err
	}
	return r.validate()
}

// limits returns all limits by their names in errors.
func (r *Rule) limits() map[string]algo.Spec {
	all := map[string]algo.Spec{}
	if r.Limit != (algo.Spec{}) {
		all[""] = r.Limit
	}
	for key, spec := range r.Overrides {
		all[fmt.Sprintf("override %q: ", key)] = spec
	}
	for key, t := range r.Temporary {
		all[fmt.Sprintf("temporary limit of %q: ", key)] = t.Limit
	}
	return all
}

// limitOf returns the limit of a key, and whether it is the key's own.
func (r *Rule) limitOf(key string) (spec algo.Spec, own bool) {
	if t, ok := r.Temporary[key]; ok && time.Now().Before(t.Until) {
		return t.Limit, true
	}
	if spec, own = r.Overrides[key]; own {
		return spec, true
	}
	return r.Limit, false
}

func (r *Rule) validate() error {
	if r.Mode != ModeEnforce && r.Mode != ModeShadow && r.Mode != ModeOff {
		return fmt.Errorf("mode is %q, want %q, %q or nothing", r.Mode, ModeShadow, ModeOff)
	}
	all := r.limits()
	if len(all) == 0 && r.Mode != ModeOff {
		return errors.New("no limit is set; Delete removes a rule")
	}
	for _, text := range slices.Sorted(maps.Keys(all)) {
		if err := validate(all[text]); err != nil {
			return fmt.Errorf("%s%w", text, err)
		}
	}
	for key, t := range r.Temporary {
		if t.Until.IsZero() {
			return fmt.Errorf("temporary limit of %q: until is missing", key)
		}
	}
	return nil
}

// validate accepts a limit that Redis can keep. It rejects keys and full, which cannot change in use.
func validate(s algo.Spec) error {
	for _, option := range []string{"keys", "deny-new"} {
		if s.Given(option) {
			return fmt.Errorf("a rule does not take the option %s", option)
		}
	}
	return distributed.Validate(s)
}

// namesOf holds the prefix of the limits' names for each algorithm, because limits of one name
// must have one algorithm.
var namesOf = map[string]string{
	"": "rule:", "token-bucket": "rule:", "leaky-bucket": "rule-lb:", "pacer": "rule-p:",
	"fixed-window": "rule-fw:", "sliding-window": "rule-sw:", "sliding-log": "rule-sl:",
	"smooth-warming-up": "rule-wu:",
}
