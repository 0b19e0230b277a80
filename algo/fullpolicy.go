package algo

import "fmt"

// text is the policy as a Spec writes it.
func (p FullPolicy) text() string { return nameOf(int(p), "overflow", "deny-new", "allow-new") }

// MarshalText writes overflow, deny-new or allow-new.
func (p FullPolicy) MarshalText() ([]byte, error) { return []byte(p.text()), nil }

// UnmarshalText reads overflow, deny-new or allow-new.
func (p *FullPolicy) UnmarshalText(text []byte) error {
	for _, known := range []FullPolicy{Overflow, DenyNew, AllowNew} {
		if known.text() == string(text) {
			*p = known
			return nil
		}
	}
	return fmt.Errorf("want overflow, deny-new or allow-new")
}
