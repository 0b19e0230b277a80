package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// demoFile is the file of the demo; its first value is the address of the
// upstream, and its second the file of the token.
const demoFile = `# The file of the demo. Edit it while the gateway runs.
listen: ${GATEWAY_LISTEN:-127.0.0.1:8080}
admin: ${GATEWAY_ADMIN:-127.0.0.1:8081}
admin_token: {file: %[2]q}
show_keys: true
timeouts: {unready: 0s}
routes:
  - pattern: /
    upstream: http://%[1]s
    limits:
      - {name: per-address, key: ip, limit: 5/s burst 10}
  - pattern: /users/{user}/
    upstream: http://%[1]s
    limits:
      - {name: per-user, key: "path:user", limit: 20/min burst 3}
  - pattern: /keys
    upstream: http://%[1]s
    missing_key: deny
    limits:
      - {name: per-key, key: "secret:X-Api-Key", limit: 10/min}
`

const demoAbout = `The gateway serves %[1]s in front of an upstream of its own. Try

    for i in $(seq 15); do curl -s -o /dev/null -w '%%{http_code} ' http://%[2]s/; done; echo
    curl -i http://%[2]s/users/ann/
    curl -i http://%[2]s/keys -H 'X-Api-Key: one'

and look at http://%[3]s/ with the token %[4]s
`

// demo makes an upstream and a file that sends to it.
func demo(ctx context.Context, folder string) (path, about string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	server := &http.Server{Handler: http.HandlerFunc(echo), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })

	path, token := filepath.Join(folder, "gateway.yaml"), rand.Text()
	tokenPath := filepath.Join(folder, "token")
	for name, text := range map[string]string{tokenPath: token, path: fmt.Sprintf(demoFile, listener.Addr(), tokenPath)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", "", err
		}
	}
	at := func(name, otherwise string) string { return cmp.Or(os.Getenv(name), otherwise) }
	return path, fmt.Sprintf(demoAbout, path, at("GATEWAY_LISTEN", "127.0.0.1:8080"), at("GATEWAY_ADMIN", "127.0.0.1:8081"), token), nil
}

// echo answers with the request that reached the upstream.
func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "path": r.URL.Path, "headers": r.Header})
}
