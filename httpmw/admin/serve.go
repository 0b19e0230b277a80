package admin

import (
	"bytes"
	"embed"
	"encoding/json"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed page
var page embed.FS

// types are the content types of the files of the page.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// policyOfContent allows the page its own files and nothing else.
const policyOfContent = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// ServeHTTP serves the page and its API. Paths are relative to where the handler
// is mounted, see the package's comment.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	harden(w.Header())
	name := strings.TrimPrefix(r.URL.Path, "/")
	_, isAction := actions[name]
	switch {
	case isAction:
		a.act(w, r, name)
	case name == "api/state":
		a.serveState(w, r)
	default:
		serveFile(w, r, name)
	}
}

func harden(h http.Header) {
	h.Set("Content-Security-Policy", policyOfContent)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

func serveFile(w http.ResponseWriter, r *http.Request, name string) {
	if name == "" {
		name = "index.html"
	}
	contentType, known := types[path.Ext(name)]
	data, err := page.ReadFile("page/" + name)
	if !known || err != nil {
		refuse(w, http.StatusNotFound, "there is no such page")
		return
	}
	if reading(w, r) {
		w.Header().Set("Content-Type", contentType)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// reading answers any other method.
func reading(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD")
	return false
}

// refuse answers with a text of ours, never with one that came with the request.
func refuse(w http.ResponseWriter, status int, why string) {
	answer(w, status, map[string]string{"error": why})
}

// answer sends v as JSON. The encoder escapes markup.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil { // only a bug can bring it here
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
