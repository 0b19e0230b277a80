package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Bearer allows requests that carry the token: Authorization: Bearer token. The
// page has a field for it and keeps it until it is closed. It takes the same
// time whatever is sent. It panics if the token has fewer than 16 bytes, which
// could be guessed.
func Bearer(token string) func(*http.Request) error {
	if len(token) < 16 {
		panic("admin: Bearer: the token has fewer than 16 bytes")
	}
	want := sha256.Sum256([]byte(token))
	return func(r *http.Request) error {
		scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(sent))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			return errors.New("no token, or a wrong one")
		}
		return nil
	}
}

// traces are the fields with which a proxy names its client.
var traces = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// fromThisMachine is the default check for reading.
func fromThisMachine(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return errors.New("the peer is another machine")
	}
	if !loopbackHost(r.Host) {
		return errors.New("the Host is not this machine")
	}
	for _, name := range traces {
		if _, found := r.Header[name]; found {
			return errors.New("the request came through a proxy")
		}
	}
	return nil
}

// peer is the default name of an operator.
func peer(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

func loopbackHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback()
}

// ownHeader must be on every action: a form cannot set it, and a script of
// another origin only after a preflight request, which is denied.
const ownHeader = "X-Sluice-Admin"

// mayAct refuses requests that are not from this page, or not authorised.
func (a *Admin) mayAct(w http.ResponseWriter, r *http.Request, c *config) bool {
	mediaType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch {
	case a.cross.Check(r) != nil, r.Header.Get(ownHeader) == "":
		refuse(w, http.StatusForbidden, "this is not a request of the admin page")
	case !strings.EqualFold(strings.TrimSpace(mediaType), "application/json"):
		refuse(w, http.StatusUnsupportedMediaType, "the body must be application/json")
	case c.act == nil:
		refuse(w, http.StatusForbidden, "actions are off: this service has no authorization for them (WithAuthorize)")
	default:
		err := c.act(r)
		if err == nil {
			return true
		}
		c.logger.Warn("admin: action refused", "action", r.URL.Path, "peer", r.RemoteAddr, "err", clip(err.Error()))
		refuse(w, http.StatusForbidden, "you are not authorised to act")
	}
	return false
}

// mayRead refuses requests that must not see the page.
func (a *Admin) mayRead(w http.ResponseWriter, r *http.Request, c *config) bool {
	if err := c.read(r); err != nil {
		c.logger.Debug("admin: reading refused", "peer", r.RemoteAddr, "err", clip(err.Error()))
		refuse(w, http.StatusForbidden, "you are not authorised to read")
		return false
	}
	return true
}
