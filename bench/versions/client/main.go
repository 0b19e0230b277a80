// Client makes limits on Redis and decides, one line of its input at a time. It is built in the
// trees of two versions, so it uses only functions that both
// have, but for prepaid.First, which was in package distributed.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/prepaid"
	"github.com/sluice-go/sluice/distributed"
	"github.com/sluice-go/sluice/distributed/rules"
)

func main() {
	c := client{limits: map[string]*distributed.Limiter{}, all: map[string]algo.Limiter{}, credits: map[string]*distributed.Credits{}}
	store, err := distributed.New(redis.NewClient(&redis.Options{Addr: os.Args[1]}),
		distributed.WithTimeout(5*time.Second), // a busy machine is no outage
		distributed.WithDenyCache(0),           // every decision is one of the scripts
		distributed.WithHook(func(e distributed.Event) {
			if e.Kind == distributed.KeyFault || e.Kind == distributed.MixedParameters {
				c.faults.Add(1)
			}
		}))
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	defer func() { _ = store.Close() }()
	c.store = store
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		answer, err := c.do(strings.Fields(lines.Text()))
		if err != nil {
			answer = "error " + err.Error()
		}
		fmt.Println(answer)
	}
}

type client struct {
	store   *distributed.Store
	limits  map[string]*distributed.Limiter
	all     map[string]algo.Limiter
	credits map[string]*distributed.Credits
	rules   *rules.Rules
	leases  []algo.Lease
	faults  atomic.Int64
}

var ctx = context.Background()

// do executes one command: its name, the name of a limit, and arguments.
func (c *client) do(words []string) (string, error) {
	words = append(words, make([]string, 4)...)
	name, key := words[1], words[2]
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(words[i], 10, 64)
		return n
	}
	switch words[0] {
	case "limit":
		return c.limit(name, strings.TrimSpace(strings.Join(words[2:], " ")))
	case "inflight":
		return c.inFlight(name, int(number(2)))
	case "shares":
		l, err := c.store.Shares(name, algo.PerDay(10), map[string]int64{"a": 4})
		if err == nil {
			c.all[name+"/a"], c.all[name+"/b"] = l.Child("a"), l.Child("b")
		}
		return "ok", err
	case "first":
		return c.first(name)
	case "rules":
		set, err := rules.New(ctx, c.store, name)
		c.rules = set
		return "ok", err
	case "put":
		spec, err := algo.Parse(strings.TrimSpace(strings.Join(words[2:], " ")))
		if err != nil {
			return "", err
		}
		return "ok", c.rules.Put(ctx, name, rules.Rule{Limit: spec})
	case "rule":
		rule, err := c.rules.Get(ctx, name)
		return rule.Limit.String(), err
	case "count":
		return c.count(c.all[name], key, number(3))
	case "acquire":
		return c.acquire(c.all[name], key, number(3))
	case "release":
		c.leases[number(1)].Release(algo.Canceled)
		return "ok", nil
	case "settle":
		c.leases[number(1)].Settle(number(2))
		return "ok", nil
	case "ban":
		return "ok", c.limits[name].Ban(ctx, key, time.Hour)
	case "reset":
		return "ok", c.limits[name].Reset(ctx, key)
	case "reserve":
		d, err := c.limits[name].Reserve(ctx, key, words[3], number(4), time.Hour)
		return fmt.Sprint(d.Allowed), err
	case "settlereserved":
		return "ok", c.limits[name].SettleReserved(ctx, key, words[3], number(4))
	case "topup":
		return "ok", c.credits[name].TopUp(ctx, key, words[3], number(4))
	case "flood":
		return c.flood(c.all[name], key, time.Duration(number(3))*time.Millisecond)
	case "instances":
		return fmt.Sprint(c.store.Stats().Instances), nil
	case "faults":
		return fmt.Sprint(c.faults.Load()), nil
	}
	return "", fmt.Errorf("no command %q", words[0])
}

// inFlight makes a limit whose units expire after 30 s: a parameter, in older versions the default
// of an option.
func (c *client) inFlight(name string, n int) (string, error) {
	method := reflect.ValueOf(c.store).MethodByName("InFlight")
	args := []reflect.Value{reflect.ValueOf(name), reflect.ValueOf(n), reflect.ValueOf(30 * time.Second)}
	if method.Type().IsVariadic() {
		args = args[:2]
	}
	results := method.Call(args)
	l, _ := results[0].Interface().(*distributed.Limiter)
	err, _ := results[1].Interface().(error)
	c.limits[name], c.all[name] = l, l
	return "ok", err
}

func (c *client) limit(name, text string) (string, error) {
	spec, err := algo.Parse(text)
	if err != nil {
		return "", err
	}
	l, err := c.store.Limiter(name, spec)
	c.limits[name], c.all[name] = l, l
	return "ok", err
}

func (c *client) first(name string) (string, error) {
	plan, err := c.store.FixedWindow(name+"-plan", algo.Per(3, 30*24*time.Hour))
	if err != nil {
		return "", err
	}
	if c.credits[name], err = c.store.Credits(name + "-credits"); err != nil {
		return "", err
	}
	c.all[name] = prepaid.First(plan, c.credits[name])
	return "ok", nil
}

// count returns how many of n requests are admitted, by Redis or without it.
func (c *client) count(l algo.Limiter, key string, n int64) (string, error) {
	admitted := 0
	for range n {
		lease, err := l.Acquire(ctx, key, 1)
		if err != nil {
			return "", err
		}
		if lease.Allowed {
			admitted++
		}
	}
	return fmt.Sprint(admitted), nil
}

var errLocal = errors.New("decided without Redis")

// acquire answers "true" with the number of the lease, or "false".
func (c *client) acquire(l algo.Limiter, key string, n int64) (string, error) {
	lease, err := l.Acquire(ctx, key, n)
	if err == nil && lease.Source != algo.SourceRemote {
		err = errLocal
	}
	if err != nil || !lease.Allowed {
		return "false", err
	}
	c.leases = append(c.leases, lease)
	return fmt.Sprint("true ", len(c.leases)-1), nil
}

// flood acquires as fast as eight goroutines can and answers the number of admissions.
func (c *client) flood(l algo.Limiter, key string, d time.Duration) (string, error) {
	var admitted, local atomic.Int64
	var workers sync.WaitGroup
	ends := time.Now().Add(d)
	for range 8 {
		workers.Go(func() {
			for time.Now().Before(ends) {
				lease, err := l.Acquire(ctx, key, 1)
				if err != nil || lease.Source != algo.SourceRemote {
					local.Add(1)
				} else if lease.Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	workers.Wait()
	if local.Load() > 0 {
		return "", errLocal
	}
	return fmt.Sprint(admitted.Load()), nil
}
