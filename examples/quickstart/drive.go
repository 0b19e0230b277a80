package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	testpb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// user is a caller with a pace of its own.
type user struct {
	name  string
	calls int
	pause time.Duration
}

var users = []user{
	{"alice", 39, 50 * time.Millisecond}, // 20 a second
	{"bob", 20, 100 * time.Millisecond},  // 10 a second
	{"carol", 8, 250 * time.Millisecond}, // 4 a second: below the limit
}

// call makes one request and reports the decision.
type call func(ctx context.Context, user string) (admitted bool, said string, err error)

// row is one line of the table.
type row struct {
	user, transport   string
	sent, admitted    int
	first, last       time.Time // of the calls
	onAdmit, onDenial string    // the text of the first one
}

// drive calls both servers as all users at once and prints what came of it.
func drive(ctx context.Context, out io.Writer, httpAddr, grpcAddr string) error {
	client := &http.Client{Timeout: 5 * time.Second}
	conn, err := grpc.NewClient(grpcAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	transports := []struct {
		name string
		call call
	}{
		{"http", overHTTP(client, "http://"+httpAddr+"/hello")},
		{"grpc", overGRPC(testpb.NewTestServiceClient(conn))},
	}
	rows := make([]row, len(users)*len(transports))
	failed := make([]error, len(rows))
	var group sync.WaitGroup
	for i, u := range users {
		for j, t := range transports {
			at := i*len(transports) + j
			rows[at] = row{user: u.name, transport: t.name}
			group.Go(func() { failed[at] = u.drive(ctx, t.call, &rows[at]) })
		}
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return report(out, rows)
}

func (u user) drive(ctx context.Context, call call, r *row) error {
	r.first = time.Now()
	for i := range u.calls {
		if i > 0 {
			time.Sleep(time.Until(r.first.Add(time.Duration(i) * u.pause)))
		}
		admitted, said, err := call(ctx, u.name)
		if err != nil {
			return err
		}
		r.last = time.Now()
		r.sent++
		if admitted {
			r.admitted++
			r.onAdmit = cmp.Or(r.onAdmit, said)
		} else {
			r.onDenial = cmp.Or(r.onDenial, said)
		}
	}
	return nil
}

func overHTTP(client *http.Client, url string) call {
	return func(ctx context.Context, user string) (bool, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, "", err
		}
		request.Header.Set("X-User", user)
		response, err := client.Do(request)
		if err != nil {
			return false, "", err
		}
		defer response.Body.Close()
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			return false, "", err
		}
		said := []string{response.Status}
		for _, field := range []string{"RateLimit", "Retry-After"} {
			if v := response.Header.Get(field); v != "" {
				said = append(said, field+": "+v)
			}
		}
		return response.StatusCode == http.StatusOK, strings.Join(said, ", "), nil
	}
}

func overGRPC(client testpb.TestServiceClient) call {
	return func(ctx context.Context, user string) (bool, string, error) {
		var trailer metadata.MD
		ctx = metadata.AppendToOutgoingContext(ctx, "x-user", user)
		_, err := client.EmptyCall(ctx, &testpb.Empty{}, grpc.Trailer(&trailer))
		s, ok := status.FromError(err)
		if !ok {
			return false, "", err
		}
		said := []string{s.Code().String()}
		for _, d := range s.Details() {
			if retry, ok := d.(*errdetails.RetryInfo); ok {
				said = append(said, fmt.Sprintf("RetryInfo: %.1fms", retry.GetRetryDelay().AsDuration().Seconds()*1e3))
			}
		}
		for _, v := range trailer.Get("grpc-retry-pushback-ms") {
			said = append(said, "grpc-retry-pushback-ms: "+v)
		}
		return err == nil, strings.Join(said, ", "), nil
	}
}

// report prints the table. It is an error if a user was admitted beyond the limit.
func report(out io.Writer, rows []row) error {
	fmt.Fprintf(out, "%d at once and %d a second for each user on each route:\n\n", burst, perSecond)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "USER\tTRANSPORT\tSENT\tADMITTED\tDENIED\tBURST + REFILL\tFIRST ADMITTED\tFIRST DENIED")
	var wrong []error
	for _, r := range rows {
		refill := int(r.last.Sub(r.first).Seconds() * perSecond)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d + %d\t%s\t%s\n", r.user, r.transport,
			r.sent, r.admitted, r.sent-r.admitted, burst, refill, r.onAdmit, r.onDenial)
		if r.admitted > burst+refill {
			wrong = append(wrong, fmt.Errorf("%s over %s: admitted %d of at most %d", r.user, r.transport, r.admitted, burst+refill))
		}
	}
	return errors.Join(append(wrong, w.Flush())...)
}
