package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/sluice-go/sluice/algo"
)

const (
	demoTime   = 3 * time.Second
	perStream  = 3                      // clients for each stream that the plan allows
	mostPause  = 100 * time.Millisecond // of a client that is denied; a real one waits for Retry-After
	demoPrompt = `{"model":"words","stream":true,"messages":[{"role":"user","content":"Say something of the usual length, please."}]}`
)

// tally counts the results of a user's clients.
type tally struct {
	user
	mu                        sync.Mutex
	asked, served, cut, other int
	denied                    map[string]int // by the unit of the limit
	prompt, tokens            int64          // of answers
	begun                     time.Time
}

// demo sends traffic of all users, prints a table, and fails if a limit was exceeded.
func demo(ctx context.Context, out io.Writer, c *config, all map[string]limits, front, operators string) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	var tallies []*tally
	var clients sync.WaitGroup
	begun := time.Now()
	for _, key := range slices.Sorted(maps.Keys(c.Users)) {
		t := &tally{user: c.Users[key], denied: map[string]int{}, begun: begun}
		tallies = append(tallies, t)
		for range perStream * c.Plans[t.Plan].Streams {
			clients.Go(func() {
				for time.Since(begun) < demoTime && ctx.Err() == nil {
					t.ask(ctx, client, front, key)
				}
			})
		}
	}
	clients.Wait()
	page, err := client.Get(operators)
	if err != nil {
		return err
	}
	defer page.Body.Close()
	if page.StatusCode != http.StatusOK {
		return fmt.Errorf("the admin page answered %s", page.Status)
	}
	return report(out, c, all, tallies, time.Since(begun))
}

// ask makes one request, and pauses if it is denied.
func (t *tally) ask(ctx context.Context, client *http.Client, front, key string) {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, front+"/v1/chat/completions", strings.NewReader(demoPrompt))
	r.Header.Set("Authorization", "Bearer "+key)
	answer, err := client.Do(r)
	if err != nil {
		t.note(func() { t.other++ })
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var problem struct {
			Violated []string `json:"violated-policies"`
		}
		_ = json.NewDecoder(answer.Body).Decode(&problem)
		t.note(func() {
			t.asked++
			for _, name := range problem.Violated {
				t.denied[strings.TrimPrefix(name, t.Plan+"-")]++
			}
		})
		ms, _ := strconv.Atoi(answer.Header.Get("Retry-After-Ms"))
		time.Sleep(min(max(time.Duration(ms)*time.Millisecond, time.Millisecond), mostPause))
		return
	}
	u, tokens, cut := usage{}, int64(0), false
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		tokens += u.count(lines.Bytes())
		cut = cut || strings.Contains(lines.Text(), `"error"`)
	}
	t.note(func() {
		t.asked++
		t.tokens += tokens
		t.prompt += cmp.Or(u.prompt, int64(len(demoPrompt))/4+1)
		if cut {
			t.cut++
		} else {
			t.served++
		}
	})
}

func (t *tally) note(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
}

// report prints the table. The bound of a bucket is its burst, the units refilled
// since, and a token for each stream that was cut off.
func report(out io.Writer, c *config, all map[string]limits, tallies []*tally, took time.Duration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "user\tplan\tasked\tserved\tcut off\tdenied: requests\ttokens\tmoney\tstreams\ttokens used\tof at most\tdollars\t")
	var errs []error
	for _, t := range tallies {
		about := algo.About(all[t.Plan].tokens)
		most := about.Quota + int64(float64(about.Quota)*float64(took)/float64(about.Window))
		used := t.prompt + t.tokens
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.4f\t\n", t.Name, t.Plan, t.asked, t.served, t.cut,
			t.denied["requests"], t.denied["tokens"], t.denied["money"], t.denied["streams"], used, most, float64(c.price(t.prompt, t.tokens))/1e6)
		switch {
		case used > most+int64(t.cut):
			errs = append(errs, fmt.Errorf("%s used %d tokens, of at most %d", t.Name, used, most))
		case t.served == 0 || t.other > 0:
			errs = append(errs, fmt.Errorf("%s: %d requests were served, %d failed", t.Name, t.served, t.other))
		}
	}
	return errors.Join(append(errs, w.Flush())...)
}
