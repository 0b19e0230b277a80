package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/keyfunc"
)

// order is the body of an action.
type order struct {
	Policy  string `json:"policy"`
	Key     string `json:"key"`
	Seconds int64  `json:"seconds"` // of a block
	On      *bool  `json:"on"`      // of a switch
}

const (
	mostBody = 16 << 10
	patience = 2 * time.Second // with a store that does not answer
)

// orderError reports an order that makes no sense; its text is sent.
type orderError string

func (e orderError) Error() string { return string(e) }

// actions execute an order and return the answer.
var actions = map[string]func(ctx context.Context, p *policy, o *order) (any, error){
	"api/peek":   peek,
	"api/reset":  forgive,
	"api/block":  block,
	"api/switch": onOff,
}

func (a *Admin) act(w http.ResponseWriter, r *http.Request, name string) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		refuse(w, http.StatusMethodNotAllowed, "only POST")
		return
	}
	c := a.config.Load()
	if !a.mayAct(w, r, c) {
		return
	}
	o, err := readOrder(w, r)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the body is not an order")
		return
	}
	p := c.policy(o.Policy)
	if p == nil {
		refuse(w, http.StatusNotFound, "there is no such policy")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	result, err := actions[name](ctx, p, o)
	if name != "api/peek" { // it changes nothing, and the page does it each second
		c.audit(r, name, o, err)
	}
	if err != nil {
		status, why := explain(err)
		refuse(w, status, why)
		return
	}
	answer(w, http.StatusOK, result)
}

func readOrder(w http.ResponseWriter, r *http.Request) (*order, error) {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	d.DisallowUnknownFields()
	o := new(order)
	if err := d.Decode(o); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the order")
	}
	if len(o.Key) > longestKey {
		return nil, errors.New("the key is too long")
	}
	return o, nil
}

// audit logs an action.
func (c *config) audit(r *http.Request, name string, o *order, err error) {
	args := []any{"action", name, "policy", o.Policy, "key", hashText(keyfunc.Hash(o.Key)), "peer", r.RemoteAddr}
	if o.Seconds != 0 {
		args = append(args, "seconds", o.Seconds)
	}
	if o.On != nil {
		args = append(args, "on", *o.On)
	}
	if err != nil {
		c.logger.Warn("admin: action failed", append(args, "err", err)...)
		return
	}
	c.logger.Info("admin: action", args...)
}

func explain(err error) (status int, why string) {
	var senseless orderError
	switch {
	case errors.As(err, &senseless):
		return http.StatusBadRequest, senseless.Error()
	case errors.Is(err, ErrUnsupported):
		return http.StatusConflict, "this limit cannot do that"
	}
	return http.StatusBadGateway, "the limit did not carry it out; the log has the reason"
}

// peeked is the remaining quota of a key.
type peeked struct {
	Hash       string  `json:"hash"`
	Limit      int64   `json:"limit"`
	Remaining  int64   `json:"remaining"`
	Source     string  `json:"source"`
	NextAfter  seconds `json:"next_after"`
	ResetAfter seconds `json:"reset_after"`
}

func peek(ctx context.Context, p *policy, o *order) (any, error) {
	lease, err := p.limiter.Acquire(ctx, o.Key, 0)
	if err != nil {
		return nil, err
	}
	lease.Release(algo.Canceled)
	d := &lease.Decision
	return peeked{hashText(keyfunc.Hash(o.Key)), d.Limit, d.Remaining, d.Source.String(), seconds(d.NextAfter), seconds(d.ResetAfter)}, nil
}

// done names the key of an action.
type done struct {
	Hash string `json:"hash"`
}

func forgive(ctx context.Context, p *policy, o *order) (any, error) {
	if p.can.reset == nil {
		return nil, ErrUnsupported
	}
	return done{hashText(keyfunc.Hash(o.Key))}, p.can.reset(ctx, o.Key)
}

func block(ctx context.Context, p *policy, o *order) (any, error) {
	most := int64(longestBan / time.Second)
	switch {
	case p.can.block == nil:
		return nil, ErrUnsupported
	case o.Seconds < 1 || o.Seconds > most:
		return nil, orderError(fmt.Sprintf("a block lasts 1 to %d seconds", most))
	}
	return done{hashText(keyfunc.Hash(o.Key))}, p.can.block.Ban(ctx, o.Key, time.Duration(o.Seconds)*time.Second)
}

func onOff(_ context.Context, p *policy, o *order) (any, error) {
	switch {
	case p.can.onOff == nil:
		return nil, ErrUnsupported
	case o.On == nil:
		return nil, orderError("on must be true or false")
	case *o.On:
		p.can.onOff.On()
	default:
		p.can.onOff.Off()
	}
	return map[string]bool{"on": p.can.onOff.IsOn()}, nil
}
