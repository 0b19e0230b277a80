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
type router struct{ http.ServeMux }

func newRouter() *router { return new(router) }

// sentURL is the context key of the URL as the client sent it, where cleaning
// has changed it.
type sentURL struct{}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if clean := cleanPath(r.URL.Path); clean != r.URL.Path {
		sent := r.URL
		r = r.WithContext(context.WithValue(r.Context(), sentURL{}, sent))
		r.URL = &url.URL{Scheme: sent.Scheme, Host: sent.Host, Path: clean, RawQuery: sent.RawQuery}
	}
	rt.ServeMux.ServeHTTP(w, r)
}

// cleanPath resolves dot segments and repeated slashes. A trailing slash stays.
func cleanPath(p string) string {
	if !strings.HasPrefix(p, "/") {
		return p // CONNECT and OPTIONS * have none
	}
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
