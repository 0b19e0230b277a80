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

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/rules"
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
	Limit   string   `json:"limit"`   // of the key, in the text form of a Spec; empty: its own again
	Seconds int64    `json:"seconds"` // of a block, of another limit, or of a switch: an hour without it
	Note    string   `json:"note"`    // why
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
	"api/why":     why,
	"api/adjust":  adjust,
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
	if o.Policy == "" && name == "api/why" {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		answer(w, http.StatusOK, c.whyAll(ctx, o))
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
	if name != "api/why" { // it changes nothing, and the page does it each second
		c.audit(r, name, o, err)
	}
	if err == nil && name != "api/why" {
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
	if o.Limit != "" {
		args = append(args, "limit", o.Limit)
	}
	if o.Seconds != 0 {
		args = append(args, "seconds", o.Seconds)
	}
	if o.On != nil {
		args = append(args, "on", *o.On)
	}
	if err != nil {
		c.logger.Warn("admin: action failed", append(args, "err", clip(err.Error()))...)
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

// lasts checks the seconds of an order.
func (o *order) lasts() error {
	if most := int64(longestBan / time.Second); o.Seconds < 1 || o.Seconds > most {
		return orderError{http.StatusBadRequest, fmt.Sprintf("seconds must be 1 to %d", most), false}
	}
	return nil
}

// until is when the action ends.
func (o *order) until() time.Time { return time.Now().Add(time.Duration(o.Seconds) * time.Second) }

// reason names the operator too.
func (o *order) reason() string { return strings.TrimSpace(o.Note + " (" + o.by + ")") }

// adjust raises or lowers the limit of one key for a time.
func adjust(ctx context.Context, p *policy, o *order) (any, error) {
	var t rules.Temporary
	if p.can.adjust == nil {
		return nil, ErrUnsupported
	}
	if o.Limit != "" {
		spec, err := algo.Parse(o.Limit)
		if err != nil {
			return nil, orderError{http.StatusBadRequest, "limit: " + err.Error(), false}
		}
		switch err := o.lasts(); {
		case err != nil:
			return nil, err
		case p.blocks.find(o.Key) != nil:
			return nil, orderError{http.StatusConflict, "the key is blocked: unblock it first", false}
		case !o.Unseen && !p.seen(ctx, o.Key):
			return nil, errUnseen
		}
		t = rules.Temporary{Limit: spec, Until: o.until(), Reason: o.reason()}
	}
	if err := p.can.adjust.Adjust(ctx, o.Key, t); err != nil {
		return nil, err
	}
	return done{Hash: hashText(keyfunc.Hash(o.Key)), Until: max(t.Until.UnixMilli(), 0)}, nil
}

func ban(ctx context.Context, p *policy, o *order) (any, error) {
	if p.can.block == nil {
		return nil, ErrUnsupported
	}
	switch err := o.lasts(); {
	case err != nil:
		return nil, err
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

// offFor is how long a limit is off unless the order says otherwise.
const offFor = time.Hour

func onOff(ctx context.Context, p *policy, o *order) (any, error) {
	switch {
	case p.can.onOff == nil:
		return nil, ErrUnsupported
	case o.On == nil:
		return nil, orderError{http.StatusBadRequest, "on must be true or false", false}
	case *o.On:
		if err := p.can.onOff.SwitchOn(ctx); err != nil {
			return nil, err
		}
	default:
		if o.Seconds == 0 {
			o.Seconds = int64(offFor / time.Second)
		}
		if err := o.lasts(); err != nil {
			return nil, err
		}
		if err := p.can.onOff.SwitchOff(ctx, o.until(), o.reason()); err != nil {
			return nil, err
		}
	}
	off, until, _ := p.can.onOff.SwitchedOff()
	return struct {
		On    bool  `json:"on"`
		Until int64 `json:"until,omitempty"` // Unix time in ms
	}{!off, max(until.UnixMilli(), 0)}, nil
}
