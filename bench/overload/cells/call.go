package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
)

// call sends one request of a tenant and class and reports whether it was served.
func (r rig) call(tenant, priority string, cost int) bool {
	if r.rpc != nil {
		ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(context.Background(), fields(tenant, priority)...), 2*time.Second)
		defer cancel()
		var e emptypb.Empty
		return r.rpc.Invoke(ctx, "/overload.Service/Do", &e, &e) == nil
	}
	req, err := http.NewRequest(http.MethodGet, r.addr, nil)
	if err != nil {
		panic(err) // the address is the server's own
	}
	for pair := fields(tenant, priority); len(pair) > 0; pair = pair[2:] {
		req.Header.Set(pair[0], pair[1])
	}
	if cost > 1 {
		req.Header.Set("X-Cost", strconv.Itoa(cost))
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return err == nil && resp.StatusCode == http.StatusOK
}

func fields(tenant, priority string) (all []string) {
	if tenant != "" {
		all = append(all, "x-tenant", tenant)
	}
	if priority != "" {
		all = append(all, "priority", priority)
	}
	return all
}

func dialRPC(addr string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return conn, nil
}
