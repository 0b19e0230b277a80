package grpcmw_test

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/grpcmw"
	"github.com/sluice-go/sluice/keyfunc/rpckey"
)

// How long a slot is held: a received message until the next is asked for, a
// sent one while it is sent, an opening as long as the stream.
func TestSlotsOfMessages(t *testing.T) {
	s := &slots{limit: 10}
	i := grpcmw.StreamServerInterceptor(s, rpckey.Global(), grpcmw.WithStreamMode(grpcmw.OnOpen|grpcmw.PerRecv|grpcmw.PerSend))
	err := run(t.Context(), i, func(ss grpc.ServerStream) error {
		require.EqualValues(t, 1, s.inFlight.Load())
		for range 3 {
			require.NoError(t, ss.RecvMsg(nil))
			require.EqualValues(t, 2, s.inFlight.Load())
			require.NoError(t, ss.SendMsg(nil))
			require.EqualValues(t, 2, s.inFlight.Load())
		}
		return nil
	})
	require.NoError(t, err)
	s.requireIdle(t)
	require.EqualValues(t, 7, s.outcomes[algo.Succeeded|algo.Untimed].Load())
	require.EqualValues(t, 7, s.acquired.Load())
}

// late is a stream whose message arrives when the test says so.
type late struct {
	noStream
	arrive chan struct{}
}

func (l *late) RecvMsg(any) error { <-l.arrive; return nil }

// A message that arrives after the handler has returned, in a goroutine that
// it left behind, leaves no slot taken.
func TestMessageAfterTheEnd(t *testing.T) {
	s := &slots{limit: 10}
	i := grpcmw.StreamServerInterceptor(s, rpckey.Global(), grpcmw.WithStreamMode(grpcmw.PerRecv))
	ss, done := &late{noStream{ctx: t.Context()}, make(chan struct{})}, make(chan struct{})
	err := i(nil, ss, streamInfo, func(_ any, ss grpc.ServerStream) error {
		go func() {
			defer close(done)
			ss.RecvMsg(nil)
		}()
		return nil
	})
	require.NoError(t, err)
	close(ss.arrive)
	<-done
	s.requireIdle(t)
	require.EqualValues(t, 1, s.acquired.Load())
}

// A message that is denied in a goroutine of the handler ends the stream
// before the handler sees the denial: it reaches outer limiters and the client
// however soon the handler returns.
func TestDenialInAGoroutineOfTheHandler(t *testing.T) {
	for range 100 {
		outer := &script{}
		inner := &script{answer: func(string, int64) (algo.Decision, error) { return quotaFor(time.Minute), nil }}
		ss, done := &local{noStream: noStream{ctx: t.Context()}}, make(chan struct{})
		err := chained(ss, func(ss grpc.ServerStream) error {
			go func() {
				defer close(done)
				ss.RecvMsg(nil)
			}()
			for ss.Context().Err() == nil {
				if err := ss.SendMsg(nil); err != nil {
					return err
				}
			}
			return nil
		}, grpcmw.StreamServerInterceptor(outer, rpckey.Global()),
			grpcmw.StreamServerInterceptor(inner, rpckey.Global(), grpcmw.WithStreamMode(grpcmw.PerRecv)))
		require.Equal(t, codes.ResourceExhausted, status.Code(err))
		require.Equal(t, []algo.Outcome{algo.Failed | algo.Untimed}, outer.released(), "the stream had begun")
		require.Len(t, ss.md[pushback], 1)
		<-done
	}
}

// chained runs a handler behind two interceptors.
func chained(ss grpc.ServerStream, h func(grpc.ServerStream) error, outer, inner grpc.StreamServerInterceptor) error {
	return outer(nil, ss, streamInfo, func(srv any, ss grpc.ServerStream) error {
		return inner(srv, ss, streamInfo, func(_ any, ss grpc.ServerStream) error { return h(ss) })
	})
}

// The charge of a message that cannot be sent is given back.
func TestUnsentMessageIsGivenBack(t *testing.T) {
	l := &script{}
	i := grpcmw.StreamServerInterceptor(l, rpckey.Global(), grpcmw.WithStreamMode(grpcmw.PerSend))
	ss := &unsendable{noStream{ctx: t.Context()}}
	i(nil, ss, streamInfo, func(_ any, ss grpc.ServerStream) error { return ss.SendMsg(nil) })
	require.Equal(t, []algo.Outcome{algo.Canceled}, l.released())
}

type unsendable struct{ noStream }

func (*unsendable) SendMsg(any) error { return io.EOF }
