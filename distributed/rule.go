package distributed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/algo"
)

// Rule is a limit that is kept in Redis, for all instances.
type Rule struct {
	// Limit is a token bucket: rate, burst and wait. Required.
	Limit algo.Spec `json:"limit"`
	// Mode says what becomes of the decisions; Enforce by default.
	Mode Mode `json:"mode,omitempty"`
	// Apps are the applications that the rule is for; all if there are none.
	// For others it is a rule that does not exist. See [WithApp].
	Apps []string `json:"apps,omitempty"`
	// Overrides are other limits for single keys.
	Overrides map[string]algo.Spec `json:"overrides,omitempty"`
	// Version counts the changes; Put sets it.
	Version int64 `json:"-"`
}

// Mode says what becomes of a rule's decisions.
type Mode string

// The modes.
const (
	Enforce Mode = ""
	// Observe decides and reports, and denies nothing: a trial run.
	Observe Mode = "shadow"
	// Disabled admits everything: a switch to turn a limit off everywhere.
	Disabled Mode = "off"
)

// ErrNoRule reports a rule that does not exist, or has been deleted.
var ErrNoRule = errors.New("distributed: no such rule")

func (r *Rule) validate() error {
	if r.Mode != Enforce && r.Mode != Observe && r.Mode != Disabled {
		return fmt.Errorf("mode is %q, want %q, %q or nothing", r.Mode, Observe, Disabled)
	}
	if err := validSpec(r.Limit); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(r.Overrides)) {
		if err := validSpec(r.Overrides[key]); err != nil {
			return fmt.Errorf("override %q: %w", key, err)
		}
	}
	return nil
}

// validSpec accepts what a token bucket in Redis can keep.
func validSpec(s algo.Spec) error {
	if s.Algorithm != "" && s.Algorithm != "token-bucket" {
		return fmt.Errorf("algorithm is %q, want token-bucket", s.Algorithm)
	}
	if err := takesOnly(s, "Burst", "MaxWait"); err != nil {
		return fmt.Errorf("a rule %w", err)
	}
	a := fromSpec(s)
	_, err := newGCRA(a.rate, a.theBurst(), a.maxWait)
	return err
}

func fromSpec(s algo.Spec) asked {
	return asked{rate: s.Rate, burst: s.Burst, burstSet: s.Given("burst"), maxWait: s.MaxWait}
}

// document is a rule as it stands in Redis. A deleted one stays as a tombstone:
// a rule that is merely missing, because Redis lost it, stays in force.
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
