package grpcmw

import (
	"fmt"
	"time"
)

// StreamMode is what is charged on a stream. Modes can be combined with |.
type StreamMode uint8

const (
	// OnOpen charges the stream once, when it is opened. A slot of an
	// in-flight limiter is held until it ends.
	OnOpen StreamMode = 1 << iota
	// PerRecv charges each message received, after it has arrived. A slot of
	// an in-flight limiter is held until the next message is asked for.
	PerRecv
	// PerSend charges each message sent, before it is. A slot is held until
	// the message is handed to the transport.
	PerSend
)

const everyMode = OnOpen | PerRecv | PerSend

func (m StreamMode) has(part StreamMode) bool { return m&part != 0 }

// WithStreamMode sets what is charged on a stream; the default is OnOpen.
// A stream that is charged by message only is itself free to open: combine
// PerRecv with OnOpen, or limit both with two interceptors.
func WithStreamMode(m StreamMode) Option {
	return Option{"WithStreamMode", func(s *settings) error {
		s.mode = m
		if m == 0 || m > everyMode {
			return fmt.Errorf("is %d, want OnOpen, PerRecv, PerSend or several of them", m)
		}
		return nil
	}}
}

// WithBackPressure makes a message that its quota denies wait up to most,
// instead of ending the stream. While a received message waits, no further
// one is read, so that flow control makes the sender wait too. What has to
// wait longer than most, or than the stream's deadline, ends the stream, and
// so does overload. The default is not to wait; algo.Forever waits as long as
// the stream lives.
//
// It concerns messages, so it goes with [WithStreamMode] and PerRecv or PerSend,
// and not the opening of streams: for that give the limiter itself algo.MaxWait.
func WithBackPressure(most time.Duration) Option {
	return Option{"WithBackPressure", func(s *settings) error {
		s.backPressure = most
		if most <= 0 {
			return fmt.Errorf("is %v, want above 0", most)
		}
		return nil
	}}
}
