package algo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// MarshalJSON returns the Spec as an object, and an error for a Spec that makes
// no limiter.
func (s Spec) MarshalJSON() ([]byte, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteByte('{')
	if s.Algorithm != "" && s.Algorithm != defaultAlgorithm {
		fmt.Fprintf(&b, `"algorithm":%q,`, s.Algorithm)
	}
	fmt.Fprintf(&b, `"rate":%q`, s.Rate.String())
	s.each(func(f *field, value string) {
		fmt.Fprintf(&b, `,%q:%s`, f.word, literal(value))
	})
	b.WriteByte('}')
	return b.Bytes(), nil
}

// literal returns numbers and booleans unchanged, and other values quoted.
func literal(v string) string {
	if json.Valid([]byte(v)) {
		return v
	}
	return fmt.Sprintf("%q", v)
}

// UnmarshalJSON reads a Spec from a string in the text form, or from an object of strings, numbers
// and, for flags, booleans. Unknown names are errors.
func (s *Spec) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '"' {
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("algo: spec: %w", err)
		}
		return s.UnmarshalText([]byte(text))
	}
	if len(data) == 0 || data[0] != '{' {
		return fmt.Errorf("algo: spec: %s, want a string or an object", data)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("algo: spec: %w", err)
	}
	parsed, err := specOf(fields)
	if err == nil {
		*s = parsed
	}
	return err
}

// specOf makes a Spec of an object's fields.
func specOf(fields map[string]json.RawMessage) (Spec, error) {
	s := Spec{Algorithm: defaultAlgorithm}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, err := scalar(fields[name])
		if err != nil {
			return Spec{}, fmt.Errorf("algo: spec: %s is %s, %w", name, fields[name], err)
		}
		switch name {
		case "algorithm":
			s.Algorithm = value
		case "rate":
			s.Rate, err = parseRate(value)
		default:
			err = s.set(name, value)
		}
		if err != nil {
			return Spec{}, err
		}
	}
	return s, s.validate()
}

// scalar returns a JSON string, number or boolean as text.
func scalar(raw json.RawMessage) (s string, err error) {
	if len(raw) > 0 && raw[0] == '"' {
		err = json.Unmarshal(raw, &s)
		return s, err
	}
	if b := string(raw); b == "true" || b == "false" {
		return b, nil
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil || n == "" {
		return "", fmt.Errorf("want a string, a number or a boolean")
	}
	return n.String(), nil
}
