package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// Rule is a limit that is kept in Redis, for all instances.
type Rule struct {
	// Limit is any limit that distributed.Store.Limiter takes, without the options
	// keys and full. Required. If its algorithm is changed, keys begin afresh.
	Limit algo.Spec `json:"limit"`
	// Mode says whether the rule is enforced; ModeEnforce by default.
	Mode Mode `json:"mode,omitempty"`
	// Apps lists the applications that the rule applies to; all if it is empty.
	// For others the rule does not exist. See [WithApp].
	Apps []string `json:"apps,omitempty"`
	// Overrides are other limits for single keys. An override with the algorithm of
	// Limit keeps what the key has spent: of a window or a log the units, of a bucket
	// the time until it is full. Each takes about 2 KB in every instance, and
	// 20 KB once its key has been used, until a poll interval after its end: give plans
	// with many keys a rule each.
	Overrides map[string]algo.Spec `json:"overrides,omitempty"`
	// Version counts the changes; Put sets it.
	Version int64 `json:"-"`
}

// Mode says whether a rule is enforced.
type Mode string

// The modes.
const (
	ModeEnforce Mode = ""
	// ModeShadow decides and reports, and denies nothing: a trial.
	ModeShadow Mode = "shadow"
	// ModeOff admits everything: a switch that turns a limit off everywhere.
	ModeOff Mode = "off"
)

// ErrNoRule reports a rule that does not exist, or has been deleted.
var ErrNoRule = errors.New("rules: no such rule")

func (r *Rule) validate() error {
	if r.Mode != ModeEnforce && r.Mode != ModeShadow && r.Mode != ModeOff {
		return fmt.Errorf("mode is %q, want %q, %q or nothing", r.Mode, ModeShadow, ModeOff)
	}
	if err := validate(r.Limit); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(r.Overrides)) {
		if err := validate(r.Overrides[key]); err != nil {
			return fmt.Errorf("override %q: %w", key, err)
		}
	}
	return nil
}

// validate accepts a limit that Redis can keep. (keys and full cannot be changed in use.)
func validate(s algo.Spec) error {
	for _, option := range []string{"keys", "deny-new"} {
		if s.Given(option) {
			return fmt.Errorf("a rule does not take the option %s", option)
		}
	}
	return distributed.Validate(s)
}

// namesOf begin the names of the limits of each algorithm: limits of one name have one
// algorithm.
var namesOf = map[string]string{
	"token-bucket": "rule:", "leaky-bucket": "rule-lb:", "pacer": "rule-p:",
	"fixed-window": "rule-fw:", "sliding-window": "rule-sw:", "sliding-log": "rule-sl:",
}

// algorithmOf is the algorithm of s, also if it is not written.
func algorithmOf(s algo.Spec) string {
	if s.Algorithm == "" {
		return "token-bucket"
	}
	return s.Algorithm
}

// document is a rule as Redis keeps it. A deleted rule stays as a tombstone: a
// rule that is missing because Redis lost it stays in force.
type document struct {
	Rule
	Deleted bool `json:"deleted,omitempty"`
}

func (d *document) text() (string, error) {
	if d.Deleted {
		return `{"deleted":true}`, nil
	}
	b, err := json.Marshal(d.Rule)
	return string(b), err
}

// parseDocument reads 'version document'.
func parseDocument(text string) (d document, err error) {
	version, body, ok := strings.Cut(text, " ")
	if !ok {
		return d, fmt.Errorf("document %.40q has no version", text)
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		return d, err
	}
	if d.Version, err = strconv.ParseInt(version, 10, 64); err != nil {
		return d, err
	}
	if d.Deleted {
		return d, nil
	}
	return d, d.validate()
}
