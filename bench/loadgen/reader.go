package loadgen

import (
	"bytes"
	"errors"
	"net"
	"strconv"
)

// reader reads answers that have a Content-Length.
type reader struct {
	conn net.Conn
	buf  [4096]byte
	n    int
}

var (
	errStrange = errors.New("loadgen: an answer that is not understood")
	version    = []byte("HTTP/1.1 ")
	endOfHead  = []byte("\r\n\r\n")
	lengthName = []byte("\r\nContent-Length: ")
	closing    = []byte("\r\nConnection: close\r\n")
)

// answer reads one answer; last reports that no other follows it on this
// connection.
func (r *reader) answer() (status int, last bool, err error) {
	for {
		if head := bytes.Index(r.buf[:r.n], endOfHead); head >= 0 {
			return r.parse(head)
		}
		if err := r.fill(); err != nil {
			return 0, true, err
		}
	}
}

func (r *reader) parse(head int) (status int, last bool, err error) {
	h := r.buf[:head+2]
	if len(h) < 12 || !bytes.HasPrefix(h, version) {
		return 0, true, errStrange
	}
	status, err = strconv.Atoi(string(h[len(version):12]))
	at := bytes.Index(h, lengthName)
	if err != nil || at < 0 {
		return 0, true, errStrange
	}
	digits, _, _ := bytes.Cut(h[at+len(lengthName):], []byte("\r"))
	length, err := strconv.Atoi(string(digits))
	if err != nil || length < 0 || length > len(r.buf) {
		return 0, true, errStrange
	}
	last = bytes.Contains(h, closing)
	end := head + len(endOfHead) + length
	if end > len(r.buf) {
		return 0, true, errStrange
	}
	for r.n < end {
		if err := r.fill(); err != nil {
			return 0, true, err
		}
	}
	r.n = copy(r.buf[:], r.buf[end:r.n])
	return status, last, nil
}

func (r *reader) fill() error {
	if r.n == len(r.buf) {
		return errStrange
	}
	n, err := r.conn.Read(r.buf[r.n:])
	r.n += n
	if n > 0 {
		return nil
	}
	return err
}
