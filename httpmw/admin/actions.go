package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-go/sluice/keyfunc"
)

// order is the body of an action. It names the key in one of three ways, see
// policy.find.
type order struct {
	Policy  string   `json:"policy"`
	Key     string   `json:"key"`
	Who     []string `json:"who"`
	Hash    string   `json:"hash"`
	Unseen  bool     `json:"unseen"`  // the key may be one that no request had
	Seconds int64    `json:"seconds"` // of a block
	Note    string   `json:"note"`    // of a block: why
	On      *bool    `json:"on"`      // of a switch
	by      string
}

const (
	mostBody = 16 << 10
	mostNote = 200             // bytes
	patience = 2 * time.Second // with a store that does not answer
)

// orderError reports an order that cannot be carried out as it is; its text is
// sent.
type orderError struct {
	status int
	why    string
	unseen bool // it can, if the order says so
}

func (e orderError) Error() string { return e.why }

// actions execute an order and return the answer.
var actions = map[string]func(ctx context.Context, p *policy, o *order) (any, error){
	"api/peek":    peek,
	"api/reset":   forgive,
	"api/block":   ban,
	"api/unblock": unban,
	"api/switch":  onOff,
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
		refuse(w, http.StatusBadRequest, "invalid request body")
		return
	}
	p := c.policy(o.Policy)
	if p == nil {
		refuse(w, http.StatusNotFound, "there is no such policy")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	o.by = clip(c.actor(r))
	result, err := perform(ctx, name, p, o)
	if name != "api/peek" { // it changes nothing, and the page does it each second
		c.audit(r, name, o, err)
	}
	if err == nil && name != "api/peek" {
		a.Mark(strings.TrimPrefix(name, "api/") + " " + o.Policy)
	}
	if err != nil {
		explain(w, err)
		return
	}
	answer(w, http.StatusOK, result)
}

// perform finds the key of an order, where it has one, and carries it out.
func perform(ctx context.Context, name string, p *policy, o *order) (any, error) {
	if name != "api/switch" {
		key, err := p.find(o)
		if err != nil {
			return nil, err
		}
		o.Key = key
	}
	return actions[name](ctx, p, o)
}

func readOrder(w http.ResponseWriter, r *http.Request) (*order, error) {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody))
	d.DisallowUnknownFields()
	o := new(order)
	if err := d.Decode(o); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body continues after the order")
	}
	if len(o.Key) > longestKey {
		return nil, errors.New("the key is too long")
	}
	if len(o.Note) > mostNote {
		return nil, errors.New("the note is too long")
	}
	return o, nil
}

// audit logs an action.
func (c *config) audit(r *http.Request, name string, o *order, err error) {
	args := []any{"action", name, "policy", o.Policy, "key", hashText(keyfunc.Hash(o.Key)), "by", o.by, "peer", r.RemoteAddr}
	if o.Note != "" {
		args = append(args, "note", o.Note)
	}
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

func explain(w http.ResponseWriter, err error) {
	var wrong orderError
	switch {
	case errors.As(err, &wrong) && wrong.unseen:
		answer(w, wrong.status, map[string]any{"error": wrong.why, "unseen": true})
	case errors.As(err, &wrong):
		refuse(w, wrong.status, wrong.why)
	case errors.Is(err, ErrUnsupported):
		refuse(w, http.StatusConflict, "this limit cannot do that")
	default:
		refuse(w, http.StatusBadGateway, "the limit did not carry it out; the log has the reason")
	}
}

// peeked is the remaining quota of a key.
type peeked struct {
	Hash       string  `json:"hash"`
	Limit      int64   `json:"limit"`
	Remaining  int64   `json:"remaining"`
	Source     string  `json:"source"`
	NextAfter  seconds `json:"next_after"`
	ResetAfter seconds `json:"reset_after"`
	Seen       bool    `json:"seen"`          // false: no request with this key has been seen
	Blocked    int64   `json:"blocked_until"` // Unix time in ms; 0: not blocked
}

func peek(ctx context.Context, p *policy, o *order) (any, error) {
	d, err := p.peek(ctx, o.Key)
	if err != nil {
		return nil, err
	}
	shown := peeked{
		Hash: hashText(keyfunc.Hash(o.Key)), Limit: d.Limit, Remaining: d.Remaining, Source: d.Source.String(),
		NextAfter: seconds(d.NextAfter), ResetAfter: seconds(d.ResetAfter), Seen: p.seen(ctx, o.Key),
	}
	if b := p.blocks.find(o.Key); b != nil {
		shown.Blocked = b.until.UnixMilli()
	}
	return shown, nil
}

// done names the key of an action.
type done struct {
	Hash  string `json:"hash"`
	Until int64  `json:"until,omitempty"` // of a block: Unix time in ms
}

func forgive(ctx context.Context, p *policy, o *order) (any, error) {
	switch {
	case p.can.reset == nil:
		return nil, ErrUnsupported
	case !o.Unseen && !p.seen(ctx, o.Key):
		return nil, errUnseen
	}
	err := p.can.reset(ctx, o.Key)
	if err == nil {
		p.blocks.remove(o.Key)
	}
	return done{Hash: hashText(keyfunc.Hash(o.Key))}, err
}

func ban(ctx context.Context, p *policy, o *order) (any, error) {
	most := int64(longestBan / time.Second)
	switch {
	case p.can.block == nil:
		return nil, ErrUnsupported
	case o.Seconds < 1 || o.Seconds > most:
		return nil, orderError{http.StatusBadRequest, fmt.Sprintf("a block lasts 1 to %d seconds", most), false}
	case !o.Unseen && !p.seen(ctx, o.Key):
		return nil, errUnseen
	}
	b := newBlock(o.Key, time.Duration(o.Seconds)*time.Second, p.limiter)
	b.by, b.note = o.by, o.Note
	if err := p.can.block.Ban(ctx, o.Key, b.until.Sub(b.since)); err != nil {
		return nil, err
	}
	_ = p.blocks.add(b) // a full list does not make the ban less
	return done{hashText(b.hash), b.until.UnixMilli()}, nil
}

func unban(ctx context.Context, p *policy, o *order) (any, error) {
	switch {
	case p.can.unblock == nil:
		return nil, ErrUnsupported
	case !o.Unseen && !p.seen(ctx, o.Key):
		return nil, errUnseen
	}
	err := p.can.unblock(ctx, o.Key)
	if err == nil {
		p.blocks.remove(o.Key)
	}
	return done{Hash: hashText(keyfunc.Hash(o.Key))}, err
}

func onOff(_ context.Context, p *policy, o *order) (any, error) {
	switch {
	case p.can.onOff == nil:
		return nil, ErrUnsupported
	case o.On == nil:
		return nil, orderError{http.StatusBadRequest, "on must be true or false", false}
	case *o.On:
		p.can.onOff.On()
	default:
		p.can.onOff.Off()
	}
	return map[string]bool{"on": p.can.onOff.IsOn()}, nil
}
