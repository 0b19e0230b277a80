package algo

import (
	"fmt"
	"strconv"
	"time"
)

// specField is one option of a Spec: how it is written and read, and the
// Option that it stands for.
type specField struct {
	word  string // in the text form and in JSON
	flag  bool   // it has no value in the text form
	zeros bool   // given as zero it is not the same as not given
	// parse reads the value, and text writes it; "" if it is zero.
	parse func(s *Spec, value string) error
	text  func(s *Spec) string
	// option is nil where the constructor takes the field another way.
	option func(s *Spec) Option
	// read takes the value from options, and reports whether it was given.
	read func(s *Spec, given *settings) bool
}

// specFields is every option, in the order in which String writes them. A
// constructor that does not know one says so itself.
var specFields = []specField{
	whole("burst", true, func(s *Spec) *int64 { return &s.Burst },
		func(s *Spec) Option { return Burst(s.Burst) },
		func(s *Spec, given *settings) bool { s.Burst = given.burst; return given.burstSet }),
	span("wait", true, func(s *Spec) *time.Duration { return &s.MaxWait },
		func(s *Spec) Option { return MaxWait(s.MaxWait) },
		func(s *Spec, given *settings) bool { s.MaxWait = given.maxWait; return given.maxWaitSet }),
	whole("queue", true, func(s *Spec) *int64 { return &s.MaxQueue },
		func(s *Spec) Option { return MaxQueue(s.MaxQueue) },
		func(s *Spec, given *settings) bool { s.MaxQueue = given.maxQueue; return given.maxQueueSet }),
	whole("slack", false, func(s *Spec) *int64 { return &s.Slack },
		func(s *Spec) Option { return Slack(s.Slack) },
		func(s *Spec, given *settings) bool { s.Slack = given.slack; return s.Slack != 0 }),
	whole("delay", true, func(s *Spec) *int64 { return &s.DelayAfter },
		func(s *Spec) Option { return DelayAfter(s.DelayAfter) },
		func(s *Spec, given *settings) bool { s.DelayAfter = given.delayAfter; return given.delayAfterSet }),
	flag("nodelay", func(s *Spec) *bool { return &s.NoDelay }, NoDelay,
		func(s *Spec, given *settings) bool { s.NoDelay = given.noDelay; return s.NoDelay }),
	span("warmup", false, func(s *Spec) *time.Duration { return &s.Warmup },
		nil, func(*Spec, *settings) bool { return false }),
	{
		word: "cold", zeros: true, parse: parseCold,
		text:   func(s *Spec) string { return unlessZero(s.ColdFactor, formatFloat) },
		option: func(s *Spec) Option { return ColdFactor(s.ColdFactor) },
		read:   func(s *Spec, given *settings) bool { s.ColdFactor = given.coldFactor; return given.coldFactorSet },
	},
	whole("cells", true, func(s *Spec) *int64 { return &s.Cells },
		func(s *Spec) Option { return Cells(int(min(s.Cells, mostCells+1))) },
		func(s *Spec, given *settings) bool {
			s.Cells = int64(given.window.cells)
			return given.window.cellsSet
		}),
	span("offset", false, func(s *Spec) *time.Duration { return &s.Offset },
		func(s *Spec) Option { return Offset(s.Offset) },
		func(s *Spec, given *settings) bool { s.Offset = given.window.offset; return s.Offset != 0 }),
	{
		word: "aligned", parse: parseAligned,
		text:   func(s *Spec) string { return unlessZero(s.AlignedTo, formatTime) },
		option: func(s *Spec) Option { return AlignedTo(s.AlignedTo) },
		read: func(s *Spec, given *settings) bool {
			s.AlignedTo = given.window.aligned.Round(0).UTC()
			return !s.AlignedTo.IsZero()
		},
	},
	flag("spread", func(s *Spec) *bool { return &s.Spread }, Spread,
		func(s *Spec, given *settings) bool { s.Spread = given.window.spread; return s.Spread }),
	whole("keys", true, func(s *Spec) *int64 { return &s.MaxKeys },
		func(s *Spec) Option { return MaxKeys(int(min(s.MaxKeys, mostMaxKeys))) },
		func(s *Spec, given *settings) bool { s.MaxKeys = int64(given.maxKeys); return s.MaxKeys != 0 }),
	{
		word:   "full",
		parse:  func(s *Spec, v string) error { return s.OnFull.UnmarshalText([]byte(v)) },
		text:   func(s *Spec) string { return unlessZero(s.OnFull, FullPolicy.text) },
		option: func(s *Spec) Option { return OnFull(s.OnFull) },
		read:   func(s *Spec, given *settings) bool { s.OnFull = given.onFull; return s.OnFull != Overflow },
	},
}

// whole is a field of a whole number.
func whole(word string, zeros bool, of func(*Spec) *int64, option func(*Spec) Option, read func(*Spec, *settings) bool) specField {
	return specField{
		word: word, zeros: zeros, option: option, read: read,
		parse: func(s *Spec, v string) (err error) { *of(s), err = parseInt(v); return err },
		text:  func(s *Spec) string { return unlessZero(*of(s), formatInt) },
	}
}

// span is a field of a duration.
func span(word string, zeros bool, of func(*Spec) *time.Duration, option func(*Spec) Option, read func(*Spec, *settings) bool) specField {
	return specField{
		word: word, zeros: zeros, option: option, read: read,
		parse: func(s *Spec, v string) (err error) { *of(s), err = parseDuration(v); return err },
		text:  func(s *Spec) string { return unlessZero(*of(s), formatDuration) },
	}
}

// flag is a field that is there or not.
func flag(word string, of func(*Spec) *bool, option func() Option, read func(*Spec, *settings) bool) specField {
	return specField{
		word: word, flag: true, read: read,
		option: func(*Spec) Option { return option() },
		parse: func(s *Spec, v string) error {
			*of(s) = v == "true"
			if v != "true" && v != "false" {
				return fmt.Errorf("want true or false")
			}
			return nil
		},
		text: func(s *Spec) string { return unlessZero(*of(s), strconv.FormatBool) },
	}
}

func parseCold(s *Spec, v string) (err error) {
	if s.ColdFactor, err = strconv.ParseFloat(v, 64); err != nil {
		return fmt.Errorf("want a number")
	}
	return nil
}

func parseAligned(s *Spec, v string) error {
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil || t.IsZero() {
		return fmt.Errorf("want a time such as 2026-01-31T00:00:00Z")
	}
	s.AlignedTo = t.UTC()
	return nil
}

func unlessZero[V comparable](v V, format func(V) string) string {
	var zero V
	if v == zero {
		return ""
	}
	return format(v)
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
