package main

import (
	"bytes"
	"encoding/json"
	"log"
	"sync"
)

// usage is the tokens used by an answer, from its events.
type usage struct {
	reported, cut      bool // cut: by a limit, before the report
	prompt, completion int64
}

// part has the fields that the gateway reads from an event or from a whole answer,
// in the formats of chat completions and of messages.
type part struct {
	Usage *struct {
		Prompt     int64 `json:"prompt_tokens"`
		Completion int64 `json:"completion_tokens"`
		Input      int64 `json:"input_tokens"`
		Output     int64 `json:"output_tokens"`
	} `json:"usage"`
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Delta struct {
		Text string `json:"text"`
	} `json:"delta"`
}

// count returns the tokens of a chunk, an event with text being one, and notes the
// usage that the upstream reports. Of several reports the last one counts.
func (u *usage) count(chunk []byte) (tokens int64) {
	if json.Valid(chunk) {
		return u.read(chunk) // a whole answer
	}
	for line := range bytes.Lines(chunk) {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			tokens += u.read(data)
		}
	}
	return tokens
}

func (u *usage) read(data []byte) (tokens int64) {
	var p part
	if json.Unmarshal(data, &p) != nil {
		return 0
	}
	if p.Usage != nil {
		u.reported = true
		u.prompt, u.completion = p.Usage.Prompt+p.Usage.Input, p.Usage.Completion+p.Usage.Output
	}
	for _, c := range p.Choices {
		if c.Delta.Content != "" {
			tokens++
		}
	}
	if p.Delta.Text != "" {
		tokens++
	}
	return tokens
}

var warnUsage sync.Once

// valid reports whether the upstream has reported the usage. If not, the count of the
// gateway is charged.
func (u *usage) valid() bool {
	if u.reported && u.prompt >= 0 && u.completion >= 0 {
		return true
	}
	if u.cut {
		return false
	}
	warnUsage.Do(func() { log.Print("an upstream reports no usage, or a negative one: tokens are counted by events") })
	return false
}
