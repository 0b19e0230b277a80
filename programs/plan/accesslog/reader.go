package accesslog

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Config says what a log does not.
type Config struct {
	// Format is combined, json, text, csv or envoy; empty: found by the first line.
	Format string
	// Fields maps a common name, or "header:NAME" in the canonical case, to the log's own name of a field.
	Fields map[string]string
	// DurationUnit is the unit of durations without one; 0: by the name of the field.
	DurationUnit time.Duration
	// TimeIsArrival says that the time of a line is that of the request's arrival. By default it
	// is its end, less the duration, except where Traefik and Envoy have the start.
	TimeIsArrival bool
	// Bad is called with each line that cannot be read, and its error.
	Bad func(*Error)
}

// Error is a line that cannot be read.
type Error struct {
	File   string
	Line   int64
	Reason error
}

// Error says where the line is, and what is wrong with it.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Reason) }

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Reason }

// MaxLine is the longest line that is read, in bytes.
const MaxLine = 1 << 20

// mostUnknown is how many lines may come before the first one whose format is recognized.
const mostUnknown = 20

// Reader reads the records of one log in the order of its lines.
type Reader struct {
	file   string
	config Config
	in     *bufio.Reader
	record Record
	line   int64
	first  bool // the format is known
}

// NewReader reads the log in, compressed by gzip or not. file is for messages.
func NewReader(file string, in io.Reader, c Config) (*Reader, error) {
	r := &Reader{file: file, config: c, in: bufio.NewReaderSize(in, MaxLine)}
	if magic, _ := r.in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		plain, err := gzip.NewReader(r.in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, cutOff(err))
		}
		r.in = bufio.NewReaderSize(plain, MaxLine)
	}
	r.record.config, r.record.found = &r.config, map[string]string{}
	return r, nil
}

// Lines is the number of lines so far, the header of a CSV included.
func (r *Reader) Lines() int64 { return r.line }

// Next returns the next record that can be read, [io.EOF] at the end, and an error if the log itself cannot
// be read. The record is valid until the next call.
func (r *Reader) Next() (*Record, error) {
	for {
		text, err := r.nextLine()
		if err != nil {
			return nil, err
		}
		switch {
		case text == "":
			continue
		case !r.first:
			header, err := r.begin(text)
			switch {
			case err != nil && r.line >= mostUnknown:
				return nil, &Error{r.file, r.line, err}
			case err != nil:
				r.bad(err)
				continue
			case header:
				continue
			}
		}
		if err := r.record.read(text); err != nil {
			r.bad(err)
			continue
		}
		return &r.record, nil
	}
}

func (r *Reader) bad(reason error) {
	if r.config.Bad != nil {
		r.config.Bad(&Error{r.file, r.line, reason})
	}
}

// nextLine returns the next line, without its end. Lines that are too long are skipped.
func (r *Reader) nextLine() (string, error) {
	for {
		line, err := r.in.ReadSlice('\n')
		if len(line) == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return "", io.EOF
			}
			return "", &Error{r.file, r.line + 1, cutOff(err)}
		}
		if r.line++; r.line == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return string(bytes.TrimRight(line, "\r\n")), nil
		}
		r.bad(fmt.Errorf("longer than %d bytes", MaxLine))
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.in.ReadSlice('\n')
		}
	}
}

// cutOff explains the error of an incomplete gzip file.
func cutOff(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the compressed file is cut off: %w", err)
	}
	return err
}

// begin finds the format by the first line, and reports whether that is a header.
func (r *Reader) begin(text string) (header bool, err error) {
	format := r.config.Format
	if format == "" {
		format = guess(text)
	}
	switch format {
	case "json":
		r.record.line = &jsonLine{}
	case "combined":
		r.record.line = &combined{}
	case "text":
		r.record.line = &textLine{}
	case "envoy":
		r.record.line = &envoyLine{}
	case "csv":
		l := &csvLine{comma: ','}
		for _, c := range []byte(";\t") {
			if strings.Count(text, string(c)) > strings.Count(text, string(l.comma)) {
				l.comma = c
			}
		}
		r.record.line = l
		if err := l.parse(text); err != nil {
			return true, err
		}
		l.names = append([]string{}, l.values...)
		r.first = true
		return true, nil
	default:
		return false, fmt.Errorf("the format is not recognized: name it by -format (combined, json, text, csv or envoy). The line begins %.60q", text)
	}
	r.first = true
	return false, nil
}

// guess returns the format of a log that begins with this line.
func guess(text string) string {
	key, _, pairs := strings.Cut(text, "=")
	switch {
	case strings.HasPrefix(text, "{"):
		return "json"
	case strings.HasPrefix(text, "[") && strings.Contains(text, `] "`):
		return "envoy"
	case strings.Contains(text, " [") && strings.Contains(text, `] "`):
		return "combined"
	case pairs && !strings.ContainsAny(key, " ,;"):
		return "text"
	case strings.ContainsAny(text, ",;\t"):
		return "csv"
	}
	return ""
}
