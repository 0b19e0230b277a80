package distributed

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/algo"
	"github.com/sluice-go/sluice/distributed/internal/remote"
	"github.com/sluice-go/sluice/internal/workshop/cases"
	"github.com/sluice-go/sluice/internal/workshop/redistest"
)

// TestL2_WindowGroupsAndDecide: several fixed windows in one step are decided as decide decides
// one after another, some of them in debt, and charged together or not at all.
func TestL2_WindowGroupsAndDecide(t *testing.T) {
	client := redistest.Start(t).Client()
	rnd := rand.New(rand.NewPCG(5, 6))
	var models []*fixedModel
	for _, m := range windowKeys(t, newFixedWindow, func(l limit) windowModel { return &fixedModel{l: l.(*fixedWindow)} }, "fixed-window") {
		models = append(models, m.(*fixedModel))
	}
	total, charged, twice := cases.Count(3_000, 50_000), 0, 0
	for range total {
		w := windowGroup{models: models, rnd: rnd, op: opAcquireAll}
		if rnd.IntN(5) == 0 {
			w.op = opPeekAll
		}
		if rnd.IntN(8) == 0 {
			w.force(t, client)
		}
		if w.run(t, client) {
			charged++
		}
		if w.group.twice {
			twice++
		}
	}
	require.Positive(t, charged)
	require.Positive(t, twice)
	t.Logf("L2: %d groups agree, %d of them charged, %d with a key more than once", total, charged, twice)
	requireEveryKeyExpires(t, client)
}

// windowGroup is one group of entries on the keys of models.
type windowGroup struct {
	models []*fixedModel
	rnd    *rand.Rand
	op     int64
	of     []int // the model of each part
	group  *group
}

// force charges a window whether it fits or not.
func (w *windowGroup) force(t *testing.T, client *redis.Client) {
	k, n := w.rnd.IntN(len(w.models)), 1+w.rnd.Int64N(12)
	m := w.models[k]
	reply := runScript(t, client, remote.NewRequest(fixedWindowScript, "w"+strconv.Itoa(k), m.l.forceArgs("k", algo.Handle{}, n)))
	m.run(t, reply[0], windowStep{op: opForce, n: n}, reply[1:])
}

func (w *windowGroup) run(t *testing.T, client *redis.Client) (charged bool) {
	w.group = &group{op: w.op}
	few := w.rnd.IntN(len(w.models))
	for range 1 + w.rnd.IntN(4) {
		k := (few + w.rnd.IntN(3)) % len(w.models)
		p := groupPart{key: "w" + strconv.Itoa(k), limit: w.models[k].l}
		p.Key, p.N = "k", w.rnd.Int64N(4)
		for _, before := range w.group.parts {
			w.group.twice = w.group.twice || before.key == p.key
		}
		w.of, w.group.parts = append(w.of, k), append(w.group.parts, p)
	}
	r := w.group.request()
	reply := runScript(t, client, r)
	require.Len(t, reply, 1+3*len(w.of))
	r.Now = reply[0]
	copy(r.Reply, reply[1:])
	return w.check(t, r)
}

// check compares a reply with the models, and charges them.
func (w *windowGroup) check(t *testing.T, r *remote.Request) bool {
	all, words, costs := true, map[int]int64{}, map[int]int64{}
	for i, p := range w.group.parts {
		m := w.models[w.of[i]]
		phase := m.l.shift("k") - m.l.phase
		if _, known := words[w.of[i]]; !known {
			words[w.of[i]] = m.run(t, r.Now, windowStep{op: opAcquire}, nil)[0] + phase
		}
		costs[w.of[i]] += p.N
		_, a, _ := m.l.decide.Answer(words[w.of[i]], r.Now+phase, costs[w.of[i]])
		if p.N == 0 {
			a.Allowed = true
		}
		require.Equal(t, a.Allowed, r.Answer(i).Flag() == flagAdmitted, "entry %d of %+v", i, w.group.parts)
		if d, _ := m.l.explain(r.Answer(i), p.N); !a.Allowed && !a.Never {
			require.Equal(t, micros(a.RetryAfter), d.RetryAfter, "entry %d of %+v", i, w.group.parts)
		}
		all = all && a.Allowed
	}
	if !all || w.op != opAcquireAll {
		return false
	}
	for k, n := range costs {
		require.Equal(t, int64(flagAdmitted), w.models[k].run(t, r.Now, windowStep{op: opAcquire, n: n}, nil)[2])
	}
	return true
}
