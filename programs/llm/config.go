package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/adaptive"
	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed"
)

// config is the file.
type config struct {
	Plans map[string]plan `json:"plans"`
	Users map[string]user `json:"users"` // by API key
	// Fields are the fields of a request that the upstream gets, besides those that the
	// gateway reads; without it all.
	Fields []string `json:"fields"`
	Prices struct {
		Input  int64 `json:"input"` // millionths of a dollar for a token
		Output int64 `json:"output"`
	} `json:"prices"`
}

// plan is the limits of one of its users.
type plan struct {
	Requests  algo.Spec `json:"requests"`
	Tokens    algo.Spec `json:"tokens"`
	Money     algo.Spec `json:"money"` // millionths of a dollar
	Streams   int       `json:"streams"`
	MaxTokens int64     `json:"max_tokens"` // of all answers to a request
}

type user struct {
	Name string `json:"name"`
	Plan string `json:"plan"`
}

// load reads the file and finds its mistakes.
func load(data []byte) (*config, error) {
	c := new(config)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(c); err != nil {
		return nil, err
	}
	for name, p := range c.Plans {
		if p.MaxTokens < 1 {
			return nil, fmt.Errorf("plan %s: max_tokens is %d, want 1 or more", name, p.MaxTokens)
		}
	}
	for _, u := range c.Users {
		if _, ok := c.Plans[u.Plan]; !ok || u.Name == "" {
			return nil, fmt.Errorf("user %q: the plan %q is not in the file, or the name is missing", u.Name, u.Plan)
		}
	}
	if c.Prices.Input < 0 || c.Prices.Output < 0 {
		return nil, fmt.Errorf("prices: %d and %d, want 0 or more", c.Prices.Input, c.Prices.Output)
	}
	return c, nil
}

func loadFile(name string) (*config, error) {
	data := standard
	if name != "" {
		var err error
		if data, err = os.ReadFile(name); err != nil {
			return nil, err
		}
	}
	return load(data)
}

// price returns the price of tokens.
func (c *config) price(prompt, completion int64) int64 {
	return prompt*c.Prices.Input + completion*c.Prices.Output
}

// limits are the limiters of a plan.
type limits struct{ requests, tokens, money, streams algo.Limiter }

// open makes the limiters of all plans: in this process, or on Redis.
func (c *config) open(store *distributed.Store) (map[string]limits, error) {
	all := map[string]limits{}
	for name, p := range c.Plans {
		var l limits
		for _, one := range []struct {
			to   *algo.Limiter
			unit string
			spec algo.Spec
		}{{&l.requests, "requests", p.Requests}, {&l.tokens, "tokens", p.Tokens}, {&l.money, "money", p.Money}} {
			made, err := limiter(store, name+"-"+one.unit, one.spec)
			if err != nil {
				return nil, fmt.Errorf("plan %s, %s: %w", name, one.unit, err)
			}
			*one.to = made
		}
		streams, err := inFlight(store, name+"-streams", p.Streams)
		if err != nil {
			return nil, fmt.Errorf("plan %s, streams: %w", name, err)
		}
		l.streams = streams
		all[name] = l
	}
	return all, nil
}

func limiter(store *distributed.Store, name string, spec algo.Spec) (algo.Limiter, error) {
	if store == nil {
		return spec.New()
	}
	return store.Limiter(name, spec)
}

func inFlight(store *distributed.Store, name string, n int) (algo.Limiter, error) {
	if store == nil {
		return adaptive.PerKey(n)
	}
	return store.InFlight(name, n, 30*time.Second)
}

// connect opens the store of an address, nil for none. A stream lasts for seconds, so a
// decision may take longer than by default.
func connect(address string) (*distributed.Store, error) {
	if address == "" {
		return nil, nil
	}
	return distributed.New(redis.NewClient(&redis.Options{Addr: address}), distributed.WithTimeout(500*time.Millisecond))
}
