package admin_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/algo/learn"
	"github.com/sluice-go/sluice/algo/telemetry"
	"github.com/sluice-go/sluice/httpmw"
	"github.com/sluice-go/sluice/httpmw/admin"
	"github.com/sluice-go/sluice/keyfunc"
)

// service is a page and the server that it is about.
type service struct {
	*testing.T
	page    *admin.Admin
	limiter *admin.Controlled
	handler http.Handler
	last    telemetry.Event
}

func newService(t *testing.T, key keyfunc.HTTP, opts ...admin.Option) *service {
	s := &service{T: t, limiter: admin.Control(bucket(t, algo.PerHour(3)))}
	s.page = newAdmin(t, append([]admin.Option{admin.WithPolicy("p", s.limiter), admin.WithAuthorize(anybody)}, opts...)...)
	s.handler = httpmw.Limit(s.limiter, key, httpmw.WithName("p"), httpmw.WithObserver(func(e telemetry.Event) {
		s.last = e
		s.page.Observe(e)
	}))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return s
}

func (s *service) get(user string) int {
	r := local(http.MethodGet, "", "")
	r.Header.Set("X-User", user)
	return serve(s.handler, r).Code
}

// An action by the hash that the page shows is an action on the key.
func TestActionsByHash(t *testing.T) {
	for _, order := range []string{`{"policy":"p","hash":"%s","seconds":60}`, `{"policy":"p","key":"%s","seconds":60}`} {
		s := newService(t, keyfunc.Header("X-User"))
		for range 5 {
			s.get("mallory")
		}
		hash := at(t, state(t, s.page), "top", 0, "hash").(string)
		ask(t, s.page, "reset", fmt.Sprintf(`{"policy":"p","hash":"%s"}`, hash))
		require.Equal(t, 200, s.get("mallory"))
		require.Equal(t, hash, ask(t, s.page, "block", fmt.Sprintf(order, hash))["hash"])
		require.Equal(t, 429, s.get("mallory"))
		require.Equal(t, 200, s.get("alice"))
		require.Equal(t, hash, at(t, state(t, s.page), "blocks", 0, "hash"))
		ask(t, s.page, "unblock", fmt.Sprintf(`{"policy":"p","hash":"%s"}`, hash))
		require.Equal(t, 200, s.get("mallory"))
		require.Equal(t, 1.0, ask(t, s.page, "why", `{"policy":"p","key":"mallory"}`)["remaining"], "the debt stayed")
	}
}

// An action on a key that no request had is not carried out unless the operator
// insists: it is a typo, or not the form that the limiter gets.
func TestActionsOnUnseenKeys(t *testing.T) {
	s := newService(t, keyfunc.Secret("X-User", []byte("0123456789abcdef")))
	require.Equal(t, 200, s.get("an API key"))
	for _, key := range []string{"an API key", "another", "0123456789abcdef"} {
		require.Equal(t, false, ask(t, s.page, "why", `{"policy":"p","key":"`+key+`"}`)["seen"])
		for _, action := range []string{"block", "reset", "unblock"} {
			w := serve(s.page, order(action, `{"policy":"p","key":"`+key+`","seconds":60}`))
			require.Equal(t, http.StatusConflict, w.Code, key)
			require.Equal(t, map[string]any{"error": "no request with this key has been seen: check the spelling", "unseen": true}, object(t, w))
		}
	}
	require.Zero(t, s.limiter.Blocked())
	ask(t, s.page, "block", `{"policy":"p","key":"soon","seconds":60,"unseen":true}`)
	require.Equal(t, 1, s.limiter.Blocked())
}

// Without Control it goes by what the key has spent.
func TestUnseenWithoutControl(t *testing.T) {
	b := bucket(t, algo.PerHour(10))
	a := newAdmin(t, admin.WithPolicy("p", b), admin.WithAuthorize(anybody))
	spend(t, b, "ada", 1)
	ask(t, a, "reset", `{"policy":"p","key":"ada"}`)
	require.Equal(t, http.StatusConflict, serve(a, order("reset", `{"policy":"p","key":"adda"}`)).Code)
}

// Operators name callers as their system does; the key function translates.
func TestActionsByIdentity(t *testing.T) {
	key := keyfunc.Secret("X-User", []byte("0123456789abcdef"))
	s := newService(t, key)
	require.NoError(t, s.page.Update(admin.WithPolicy("p", s.limiter), admin.WithIdentity("p", []string{"header X-User"}, func(who []string) (string, error) {
		if who[0] == "" {
			return "", errors.New("the header is empty")
		}
		return key(&http.Request{Header: http.Header{"X-User": who}})
	})))
	require.Equal(t, []any{"header X-User"}, at(t, state(t, s.page), "policies", 0, "identity"))
	require.Equal(t, 200, s.get("an API key"))
	require.Equal(t, 2.0, ask(t, s.page, "why", `{"policy":"p","who":["an API key"]}`)["remaining"])
	ask(t, s.page, "block", `{"policy":"p","who":["an API key"],"seconds":60}`)
	require.Equal(t, 429, s.get("an API key"))
	require.Equal(t, 200, s.get("another"))
	for body, want := range map[string]string{
		`{"policy":"p","who":[""]}`:                    "the header is empty",
		`{"policy":"p","who":["a","b"]}`:               "a caller of this policy has 1 parts, not 2",
		`{"policy":"p","who":["a typo"],"seconds":60}`: "no request with this key has been seen: check the spelling",
	} {
		require.Equal(t, want, object(t, serve(s.page, order("block", strings.Replace(body, `"p"`, `"p","seconds":60`, 1))))["error"])
	}
}

// Who blocked whom, until when and why; and a blocked request reads "blocked".
func TestBlocksAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, keyfunc.Header("X-User"), admin.WithClearKeys(), admin.WithActor(func(r *http.Request) string { return r.Header.Get("X-Operator") }))
		s.get("mallory")
		r := order("block", `{"policy":"p","key":"mallory","seconds":60,"note":"ticket 7"}`)
		r.Header.Set("X-Operator", "ann")
		now := time.Now()
		require.Equal(t, http.StatusOK, serve(s.page, r).Code)
		time.Sleep(10 * time.Second)
		require.Equal(t, 429, s.get("mallory"))
		require.True(t, s.page.IsBlocked(&s.last))
		time.Sleep(time.Second)
		listed := state(t, s.page)
		require.Equal(t, map[string]any{
			"policy": "p", "hash": fmt.Sprintf("%016x", keyfunc.Hash("mallory")), "key": "mallory", "by": "ann", "note": "ticket 7",
			"scope": "process", "since": float64(now.UnixMilli()), "limit": "", "until": float64(now.Add(time.Minute).UnixMilli()),
		}, at(t, listed, "blocks", 0))
		require.Equal(t, "blocked", at(t, listed, "decisions", 0, "kind"))
		require.Equal(t, 1.0, total(t, listed, "p", "blocked"))
		require.Zero(t, total(t, listed, "p", "denied"))
		require.Equal(t, float64(now.Add(time.Minute).UnixMilli()), ask(t, s.page, "why", `{"policy":"p","key":"mallory"}`)["blocked_until"])

		for s.get("alice") == 200 {
		}
		require.False(t, s.page.IsBlocked(&s.last))
		time.Sleep(50 * time.Second)
		require.Empty(t, state(t, s.page)["blocks"])
		s.limiter.Reset(t.Context(), "mallory")
		require.Equal(t, 200, s.get("mallory"))
	})
}

// Keys are shown only by choice.
func TestKeysAreHidden(t *testing.T) {
	s := newService(t, keyfunc.Header("X-User"))
	for range 6 {
		s.get("mallory")
	}
	ask(t, s.page, "block", `{"policy":"p","key":"mallory","seconds":60}`)
	body := serve(s.page, local(http.MethodGet, "api/state", "")).Body.String()
	require.Contains(t, body, fmt.Sprintf("%016x", keyfunc.Hash("mallory")))
	require.NotContains(t, body, "mallory")
	require.NoError(t, s.page.Update(admin.WithPolicy("p", s.limiter), admin.WithClearKeys()))
	require.Equal(t, "mallory", at(t, state(t, s.page), "top", 0, "key"))
	require.Equal(t, "mallory", at(t, state(t, s.page), "decisions", 0, "key"))
}

// A limit that is switched off limits nothing, and its blocks stay.
func TestBlocksOutlastTheSwitch(t *testing.T) {
	s := newService(t, keyfunc.Header("X-User"))
	s.get("mallory")
	ask(t, s.page, "block", `{"policy":"p","key":"mallory","seconds":60}`)
	ask(t, s.page, "switch", `{"policy":"p","on":false}`)
	require.Equal(t, 429, s.get("mallory"))
	for range 5 {
		require.Equal(t, 200, s.get("alice"))
	}
	lease, err := algo.AcquireAll(t.Context(), algo.Request{Limiter: s.limiter, Key: "mallory", N: 1}, algo.Request{Limiter: bucket(t, algo.PerHour(1)), N: 1})
	require.NoError(t, err)
	require.False(t, lease.Allowed)
	ask(t, s.page, "unblock", `{"policy":"p","key":"mallory"}`)
	require.Equal(t, 200, s.get("mallory"))
}

// Keys that come and go cost no memory and hide no key that was limited.
func TestManyCallers(t *testing.T) {
	s := newService(t, keyfunc.Header("X-User"))
	for range 5 {
		s.get("mallory")
	}
	feed := func(from, to int) {
		for i := from; i < to; i++ {
			_, err := s.limiter.Acquire(t.Context(), fmt.Sprint("user-", i), 1)
			require.NoError(t, err)
		}
	}
	feed(0, 50_000)
	before := heap()
	feed(50_000, 100_000)
	require.Less(t, int64(heap())-int64(before), int64(4<<20))
	hash := at(t, state(t, s.page), "top", 0, "hash").(string)
	require.Equal(t, hash, ask(t, s.page, "why", `{"policy":"p","hash":"`+hash+`"}`)["hash"])
	ask(t, s.page, "block", `{"policy":"p","key":"user-99999","seconds":60}`)
	missed := 0
	for i := range 1000 {
		if ask(t, s.page, "why", fmt.Sprintf(`{"policy":"p","key":"unseen-%d"}`, i))["seen"] == true {
			missed++
		}
	}
	require.Less(t, missed, 60)
}

// The row of a limit that learns, and why, say what it has learned.
func TestLearnedLimits(t *testing.T) {
	partner := learn.New(algo.PerSecond(50))
	page := newAdmin(t, admin.WithPolicy("partner", partner), admin.WithAuthorize(anybody))
	require.Equal(t, "0 a second", at(t, state(t, page), "policies", 0, "text"))
	partner.Answered("globex", learn.Answer{Sent: time.Unix(0, 0), Denied: true, Wait: time.Hour})
	says := `[0-9.]+ a second, not before [0-9a-z.]+, 1 denied, 1 waits; at 00:00:00 an answer denied, asked for 1h0m0s$`
	require.Regexp(t, "^"+says, at(t, state(t, page), "policies", 0, "text"))
	require.Regexp(t, "^denied .*; learned: "+says, ask(t, page, "why", `{"policy":"partner","key":"globex"}`)["text"])
	require.Regexp(t, "^admitted: .*; learned: 50 a second$", ask(t, page, "why", `{"policy":"partner","key":"other"}`)["text"])
}
