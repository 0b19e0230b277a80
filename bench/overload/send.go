package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/bench/loadgen"
)

// manyClients is HTTP/2 from 100 clients. One client sends all requests over one connection, and
// over another where 250 are on their way.
const manyClients = "HTTP/2 of 100 clients"

const rpcConns = 32

// sender sends single requests, which may name a tenant and a cost.
type sender struct {
	url     string
	clients []*http.Client
	conns   []*grpc.ClientConn // over gRPC
	next    atomic.Uint64
}

func newSender(addr, way string) (*sender, error) {
	s := &sender{url: "http://" + addr + "/"}
	n := 1
	switch way {
	case "grpc", "tap":
		for range rpcConns {
			conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
			if err != nil {
				return nil, err
			}
			conn.Connect()
			s.conns = append(s.conns, conn)
		}
		return s, nil
	case "TLS", "HTTP/2":
		s.url = "https://" + addr + "/"
	case manyClients:
		s.url, n = "https://"+addr+"/", 100
	}
	for range n {
		s.clients = append(s.clients, &http.Client{Transport: &http.Transport{
			// A connection that is there after its client has given up is closed, or they would use
			// up the process's files; a dial outlives such a client, too.
			MaxIdleConns: 20000, MaxIdleConnsPerHost: 1024, DisableCompression: true,
			DialContext:     (&net.Dialer{Timeout: time.Second}).DialContext,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: strings.HasPrefix(way, "HTTP/2"),
		}})
	}
	return s, nil
}

func (s *sender) close() {
	for _, c := range s.clients {
		c.CloseIdleConnections()
	}
	for _, c := range s.conns {
		_ = c.Close()
	}
}

// send returns the status of the answer as loadgen does. Clients and connections take turns.
func (s *sender) send(tenant string, cost int, patience time.Duration) int16 {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fields := map[string]string{}
	if tenant != "" {
		fields["x-tenant"], fields["x-cost"] = tenant, strconv.Itoa(max(cost, 1))
	}
	if s.conns != nil {
		client := testpb.NewTestServiceClient(s.conns[s.next.Add(1)%rpcConns])
		_, err := client.EmptyCall(metadata.NewOutgoingContext(ctx, metadata.New(fields)), &testpb.Empty{})
		return statusOf(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		panic(err) // the address is the server's own
	}
	for name, value := range fields {
		req.Header.Set(name, value)
	}
	resp, err := s.clients[s.next.Add(1)%uint64(len(s.clients))].Do(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded):
		return loadgen.TimedOut
	case err != nil:
		return loadgen.Broken
	}
	return int16(resp.StatusCode)
}

func statusOf(err error) int16 {
	switch status.Code(err) {
	case codes.OK:
		return http.StatusOK
	case codes.Unavailable, codes.ResourceExhausted:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return loadgen.TimedOut
	}
	return loadgen.Broken
}
