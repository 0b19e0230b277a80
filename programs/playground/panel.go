package main

import (
	"errors"
	"net/http"
	"net/netip"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/httpmw/admin"
)

// panel is the admin page over the limiters of the playground.
type panel struct {
	*admin.Admin
	lanes []*lane
}

func newPanel() (*panel, error) {
	a, err := admin.New(admin.WithTitle("sluice playground"), admin.WithAuthorize(fromThisMachine))
	return &panel{Admin: a}, err
}

// follow shows the lanes, and the limiter of the overload if there is one.
func (p *panel) follow(l *adaptive.Limiter) error {
	var options []admin.Option
	for _, lane := range p.lanes {
		options = append(options, admin.WithPolicy(lane.Name, lane.asked))
	}
	if l != nil {
		options = append(options, admin.WithPolicy("overload", l), admin.WithAdaptive("overload", l))
	}
	return p.Update(options...)
}

// fromThisMachine lets local users block keys and switch limits off: it
// is a playground.
func fromThisMachine(r *http.Request) error {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !peer.Addr().Unmap().IsLoopback() {
		return errors.New("the peer is another machine")
	}
	return nil
}
