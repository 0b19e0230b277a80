package command

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// askHealth asks the process with this address for operators whether it is
// ready, for containers without another program that could.
func askHealth(ctx context.Context, admin string, stdout io.Writer) int {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	host, port, _ := net.SplitHostPort(admin)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		fmt.Fprintln(stdout, err)
		return 1
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		fmt.Fprintln(stdout, err)
		return 1
	}
	defer resp.Body.Close()
	_, _ = io.Copy(stdout, io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusOK {
		return 1
	}
	return 0
}
