//go:build unix

package redistest

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readFrame reads one RESP2 or RESP3 value and returns its bytes, and for a
// command, which is an array of strings, the command's name in lower case.
func readFrame(r *bufio.Reader) (raw []byte, name string, err error) {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, "", err
	}
	if len(line) < 3 {
		return nil, "", fmt.Errorf("redistest: %q is not RESP", line)
	}
	size, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		return readBulk(r, line, size)
	case '*', '~', '>':
		return readItems(r, line, size)
	case '%', '|':
		return readItems(r, line, 2*size)
	}
	return line, "", nil
}

func readBulk(r *bufio.Reader, raw []byte, size int) ([]byte, string, error) {
	if size < 0 {
		return raw, "", nil
	}
	body := make([]byte, size+2)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, "", err
	}
	return append(raw, body...), strings.ToLower(string(body[:size])), nil
}

func readItems(r *bufio.Reader, raw []byte, count int) ([]byte, string, error) {
	first := ""
	for i := range count {
		item, name, err := readFrame(r)
		if err != nil {
			return nil, "", err
		}
		if i == 0 {
			first = name
		}
		raw = append(raw, item...)
	}
	return raw, first, nil
}
