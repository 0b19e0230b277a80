// Command mcp is a server of the Model Context Protocol over streamable HTTP whose tools are
// limited by the verified identity of the caller, never by its session: a client makes as many
// sessions as it likes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/keyfunc"
)

// cost is that of each tool, in cents; other tools cost 1.
var cost = map[string]int64{"search": 1, "report": 10}

// limits are those of each identity.
type limits struct {
	perTool       algo.Limiter // calls of each tool
	budget        algo.Limiter // cents of all tools
	subscriptions algo.Limiter // streams that are open
}

func newLimits() limits {
	return limits{
		perTool:       algo.Must(algo.NewTokenBucket(algo.PerMinute(60), algo.Burst(10))),
		budget:        algo.Must(algo.NewFixedWindow(algo.PerDay(5000))),
		subscriptions: algo.Must(adaptive.PerKey(3)),
	}
}

// limit is a middleware of the MCP server. The token is verified, so UserID is an identity. The
// session is one that the client has chosen.
func (l limits) limit(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		user := keyfunc.Identity(req.GetExtra().TokenInfo.UserID)
		switch method {
		case "tools/call":
			tool := req.(*mcp.CallToolRequest).Params.Name
			n := max(cost[tool], 1)
			lease, err := algo.AcquireAll(ctx, // all or none
				algo.Request{Limiter: l.perTool, Key: keyfunc.JoinKeys(user, tool), N: 1},
				algo.Request{Limiter: l.budget, Key: user, N: n})
			if err != nil || !lease.Allowed {
				return denied(lease.Decision), nil
			}
			defer lease.Release(algo.Succeeded)
		case "subscriptions/listen": // next returns when the subscription ends
			lease, err := l.subscriptions.Acquire(ctx, user, 1)
			if err != nil || !lease.Allowed {
				return nil, fmt.Errorf("too many subscriptions")
			}
			defer lease.Release(algo.Succeeded)
		}
		return next(ctx, method, req)
	}
}

// denied is a result that the model sees, so that it waits or does something else.
func denied(d algo.Decision) *mcp.CallToolResult {
	text := "The call costs more than you may spend: do not repeat it."
	if d.RetryAfter < algo.Forever {
		text = fmt.Sprintf("The rate limit is exceeded: call again in %d s.", d.RetryAfter/time.Second+1)
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// query is the input of the tools.
type query struct {
	Text string `json:"text"`
}

// handler is the whole server. Before the tokens are verified, requests are limited by address.
func handler(verify auth.TokenVerifier, l limits, perAddress algo.Limiter) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "limited", Version: "v1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	for name := range cost {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, in query) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done: " + in.Text}}}, nil, nil
		})
	}
	server.AddResource(&mcp.Resource{URI: "news://today", Name: "news"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "news://today", Text: "none"}}}, nil
	})
	server.AddReceivingMiddleware(l.limit)
	stream := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	return httpmw.Limit(perAddress, keyfunc.ClientIP(), httpmw.WithName("address"))(auth.RequireBearerToken(verify, nil)(stream))
}

func main() {
	address := flag.String("http", "127.0.0.1:8080", "address to serve on")
	flag.Parse()
	users := map[string]string{"alices-token": "alice", "bobs-token": "bob"}
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if user, ok := users[token]; ok {
			return &auth.TokenInfo{UserID: user, Expiration: time.Now().Add(time.Hour)}, nil
		}
		return nil, auth.ErrInvalidToken
	}
	perAddress := algo.Must(algo.NewTokenBucket(algo.PerSecond(100)))
	srv := &http.Server{Addr: *address, Handler: handler(verify, newLimits(), perAddress), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(srv.ListenAndServe())
}
