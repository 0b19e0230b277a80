package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var (
	// lengths are the fields that bound one answer; each server knows one or two of them.
	lengths = []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}
	// counts are the fields that make several answers of one request.
	counts = []string{"n", "best_of"}
	// read are the others that the gateway reads.
	read = []string{"model", "stream", "stream_options"}
)

// checkFields refuses fields that the file does not list, and the gateway's own in another
// case: some servers ignore the case.
func (c *config) checkFields(o *object) error {
	own := slices.Concat(lengths, counts, read)
	for _, m := range o.members {
		lower := strings.ToLower(m.name)
		switch {
		case slices.Contains(own, m.name):
		case slices.Contains(own, lower):
			return fmt.Errorf("%q: want it as %q", m.name, lower)
		case len(c.Fields) > 0 && !slices.Contains(c.Fields, m.name):
			return fmt.Errorf("the field %q is not allowed", m.name)
		}
	}
	return nil
}

// limitAnswers bounds the tokens of all answers to a request together by most, and
// returns how many that may be.
func limitAnswers(o *object, most int64) (int64, error) {
	answers := int64(1)
	for _, name := range counts {
		n, err := o.whole(name)
		if err != nil {
			return 0, err
		}
		answers = max(answers, n)
	}
	each, longest := most/answers, int64(0)
	if each < 1 {
		return 0, fmt.Errorf("%d answers are more than the plan allows", answers)
	}
	for _, name := range lengths {
		n, err := o.whole(name)
		if err != nil {
			return 0, err
		}
		if o.get(name) != nil && (n == 0 || n > each) {
			n = each
			o.set(name, strconv.FormatInt(n, 10))
		}
		longest = max(longest, n)
	}
	if longest == 0 {
		longest = each
		o.set("max_tokens", strconv.FormatInt(each, 10))
	}
	return longest * answers, nil
}

// reportUsage asks for the usage at the end of a stream.
func reportUsage(o *object) error {
	options := `{"include_usage":true}`
	if m := o.get("stream_options"); m != nil && string(m.value) != "null" {
		inner, err := parseObject(m.value)
		if err != nil {
			return err
		}
		inner.set("include_usage", "true")
		options = string(inner.bytes())
	}
	o.set("stream_options", options)
	return nil
}
