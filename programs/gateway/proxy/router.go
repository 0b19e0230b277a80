package proxy

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
)

// router matches requests by their cleaned path, and does not redirect to it
// as http.ServeMux does: a proxy passes on the path that the client sent.
//
// An escaped slash belongs to its part of the path, as for http.ServeMux. Where a
// server that decodes it first would be on a more specific route, the request is
// answered with 400: it would have passed that route's limits by.
type router struct {
	http.ServeMux
	spellings http.ServeMux // of routes for any spelling
	short     []func()      // registers the patterns without the slash at the end
}

func newRouter() *router { return new(router) }

// sentURL is the context key of the URL as the client sent it, where cleaning
// has changed it.
type sentURL struct{}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	escaped := r.URL.EscapedPath()
	clean := cleanPath(escaped)
	if clean == "" && r.Method != http.MethodConnect { // of http://host (RFC 9110 section 4.2.3)
		clean = "/"
	}
	if as := rt.respelled(r, clean); as != nil {
		rt.spellings.ServeHTTP(w, as)
		return
	}
	if rt.hides(r, clean) {
		http.Error(w, http.StatusText(http.StatusBadRequest), http.StatusBadRequest)
		return
	}
	if clean != escaped {
		r = r.WithContext(context.WithValue(r.Context(), sentURL{}, r.URL))
		r.URL = withPath(r.URL, clean)
	}
	rt.ServeMux.ServeHTTP(w, r)
}

// withPath is a URL with another escaped path.
func withPath(u *url.URL, escaped string) *url.URL {
	path, _ := url.PathUnescape(escaped) // it was part of a URL, and was cut between escapes only
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path, RawPath: escaped, RawQuery: u.RawQuery}
}

// hides reports whether the path leads to a more specific route when its escaped slashes
// and backslashes are decoded.
func (rt *router) hides(r *http.Request, clean string) bool {
	if !strings.Contains(clean, "%2F") && !strings.Contains(clean, "%2f") && !strings.Contains(clean, "%5C") && !strings.Contains(clean, "%5c") {
		return false
	}
	as := func(u *url.URL) int { return specificity(patternOf(&rt.ServeMux, r, u)) }
	plain := withPath(r.URL, clean)
	decoded := &url.URL{Path: cleanPath(strings.ReplaceAll(plain.Path, `\`, "/"))}
	return as(decoded) > as(plain)
}

// specificity orders patterns: every part of the path counts, and one that is named more
// than a wildcard.
func specificity(pattern string) (n int) {
	_, path, _ := strings.Cut(pattern, "/")
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "", strings.HasSuffix(part, "...}"), part == "{$}":
		case strings.HasPrefix(part, "{"):
			n++
		default:
			n += 2
		}
	}
	return n
}

// dots decodes the escaped dots, of which dot segments may be made (RFC 3986 section 6.2.2.2).
var dots = strings.NewReplacer("%2e", ".", "%2E", ".")

// cleanPath resolves dot segments and repeated slashes. A trailing slash stays.
func cleanPath(p string) string {
	if !strings.HasPrefix(p, "/") {
		return p // CONNECT and OPTIONS * have none
	}
	p = dots.Replace(p)
	clean := path.Clean(p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// restorePath gives the request for the upstream the path that the client sent.
func restorePath(pr *httputil.ProxyRequest) {
	if sent, ok := pr.In.Context().Value(sentURL{}).(*url.URL); ok {
		pr.Out.URL.Path, pr.Out.URL.RawPath = sent.Path, sent.RawPath
	}
}
