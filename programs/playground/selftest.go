package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"
)

// testFor is how long the self-test lets the burst run.
const testFor = 1500 * time.Millisecond

// selfTest opens the page as a browser would, sends a burst for a second and a
// half, and fails unless the counts are within the limits.
func selfTest(ctx context.Context, out io.Writer, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	if err := call(ctx, client, http.MethodGet, url+"/", ""); err != nil {
		return err
	}
	response, err := stream(ctx, client, url+"/events")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := json.Marshal(preset("burst"))
	if err != nil {
		return err
	}
	if err := call(ctx, client, http.MethodPost, url+"/settings", string(body)); err != nil {
		return err
	}
	began := time.Now()
	var last frame
	err = frames(response.Body, func(f frame) bool {
		last = f
		return time.Since(began) < testFor
	})
	if err != nil {
		return err
	}
	return judge(out, last, time.Since(began))
}

// stream begins to read the stream of the page.
func stream(ctx context.Context, client *http.Client, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(r)
}

// call makes one request, which must succeed.
func call(ctx context.Context, client *http.Client, method, url, body string) error {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", method, r.URL.Path, response.Status, bytes.TrimSpace(text))
	}
	return err
}

// frames hands the frames of a stream to see, until that returns false.
func frames(from io.Reader, see func(frame) bool) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	isFrame := false
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "event: "):
			isFrame = line == "event: frame"
		case isFrame && strings.HasPrefix(line, "data: "):
			var f frame
			if err := json.Unmarshal([]byte(line[len("data: "):]), &f); err != nil {
				return err
			}
			if !see(f) {
				return nil
			}
		}
	}
	return errors.Join(lines.Err(), errors.New("the events ended"))
}

// judge prints the result of each algorithm on the burst and checks it.
func judge(out io.Writer, f frame, took time.Duration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ALGORITHM\tASKED\tAT ONCE\tDELAYED\tDENIED\tMOST IN 100 MS\tMOST IN 1 S")
	var wrong []error
	for i, l := range f.Lanes {
		t := l.Totals
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", algorithms[i].Title, t.Asked, t.AtOnce, t.Delayed, t.Denied, t.Tenth, t.Second)
		if err := t.sane(algorithms[i].Name, f.Settings, took); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", algorithms[i].Name, err))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(f.Lanes) != len(algorithms) {
		wrong = append(wrong, fmt.Errorf("there are %d lanes of %d", len(f.Lanes), len(algorithms)))
	}
	return errors.Join(wrong...)
}

// sane checks the totals of a burst of twice the rate: some requests were admitted and
// some denied, and no more than the loosest of the bounds, two quotas, permits, plus
// the part of the next second that delays reserve.
func (t totals) sane(name string, s settings, took time.Duration) error {
	most := 2*max(s.Limit, s.Burst) + int((took+maxWait).Seconds()*float64(s.Limit)) + 2
	passed := t.AtOnce + t.Delayed
	switch {
	case t.Failed > 0:
		return fmt.Errorf("%d errors", t.Failed)
	case t.Asked != passed+t.Denied:
		return fmt.Errorf("asked %d times, answered %d", t.Asked, passed+t.Denied)
	case passed == 0 || t.Denied == 0:
		return fmt.Errorf("%d passed and %d were denied", passed, t.Denied)
	case name != "in-flight" && passed > most:
		return fmt.Errorf("%d passed, want %d at most", passed, most)
	case name == "in-flight" && t.InFlight > s.Burst:
		return fmt.Errorf("%d in flight, want %d at most", t.InFlight, s.Burst)
	}
	return nil
}
