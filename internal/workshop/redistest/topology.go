//go:build unix

package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// StartReplica runs a server that replicates master, and returns once the two
// are in step. It is read-only, as replicas are by default.
func StartReplica(t testing.TB, master *Server, args ...string) *Server {
	t.Helper()
	master.Do("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	r := Start(t, append([]string{"--replicaof", "127.0.0.1 " + strconv.Itoa(master.port)}, args...)...)
	eventually(t, "the replica is in step", func() bool {
		return strings.Contains(fmt.Sprint(r.Do("INFO", "replication")), "master_link_status:up")
	})
	return r
}

// Sentinels is a master and a replica that three sentinels watch.
type Sentinels struct {
	Name            string // of the master, as clients ask for it
	Master, Replica *Server
	Addrs           []string // of the sentinels
}

// StartSentinels starts the five processes. A dead master is replaced after
// about a second.
func StartSentinels(t testing.TB) *Sentinels {
	t.Helper()
	s := &Sentinels{Name: "primary", Master: Start(t)}
	s.Replica = StartReplica(t, s.Master)
	for i := range 3 {
		conf := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 2\n"+
			"sentinel down-after-milliseconds %[1]s 500\n"+
			"sentinel failover-timeout %[1]s 3000\n", s.Name, s.Master.port)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatalf("redistest: sentinel %d: %v", i, err)
		}
		s.Addrs = append(s.Addrs, startSentinel(t, conf).Addr())
	}
	for _, addr := range s.Addrs {
		node := &Server{t: t, port: portOf(addr)}
		eventually(t, "the sentinels know each other", func() bool {
			info := fmt.Sprint(node.Do("INFO", "sentinel"))
			return strings.Contains(info, "sentinels=3") && strings.Contains(info, "slaves=1")
		})
	}
	return s
}

func startSentinel(t testing.TB, conf string) *Server {
	t.Helper()
	s := &Server{t: t, args: []string{"--sentinel"}, port: freePort(t), conf: conf}
	t.Cleanup(s.Kill)
	if !s.launch() {
		t.Fatalf("redistest: the sentinel did not start on port %d", s.port)
	}
	return s
}

func portOf(addr string) int {
	_, port, _ := strings.Cut(addr, ":")
	n, _ := strconv.Atoi(port)
	return n
}

// Cluster is a Redis Cluster of three masters that share the slots evenly.
type Cluster struct {
	Nodes    [3]*Server
	Replicas []*Server // of the nodes, in order; empty without replicas
	t        testing.TB
}

// Addrs are the masters' addresses.
func (c *Cluster) Addrs() []string {
	return []string{c.Nodes[0].Addr(), c.Nodes[1].Addr(), c.Nodes[2].Addr()}
}

// StartCluster starts three masters, each with a third of the slots in one range,
// and returns once they serve all slots. The other two keep serving their slots
// when one is down.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	return startCluster(t, func(slot int) int { return slot * 3 / 16384 })
}

// StartMixedCluster is StartCluster with slots that are spread over the masters in
// short ranges, as many moves leave them.
func StartMixedCluster(t testing.TB) *Cluster {
	t.Helper()
	return startCluster(t, func(slot int) int { return slot / 64 % 3 })
}

func startCluster(t testing.TB, owner func(slot int) int) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for i := range c.Nodes {
		n := c.startNode()
		add := []any{"CLUSTER", "ADDSLOTS"}
		for slot := range 16384 {
			if owner(slot) == i {
				add = append(add, slot)
			}
		}
		n.Do(add...)
		n.Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		c.Nodes[i] = n
	}
	for _, n := range c.Nodes[1:] {
		c.Nodes[0].Do("CLUSTER", "MEET", "127.0.0.1", n.port)
	}
	for _, n := range c.Nodes {
		eventually(t, "the cluster serves", func() bool {
			info := fmt.Sprint(n.Do("CLUSTER", "INFO"))
			return strings.Contains(info, "cluster_slots_ok:16384") && strings.Contains(info, "cluster_state:ok")
		})
	}
	return c
}

func (c *Cluster) startNode() *Server {
	return Start(c.t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", "no",
		"--repl-diskless-sync-delay", "0")
}

// AddReplicas starts a replica of each master and returns once they are in step.
// Two to three seconds after a master has died its replica takes over.
func (c *Cluster) AddReplicas() {
	c.t.Helper()
	for _, master := range c.Nodes {
		r := c.startNode()
		r.Do("CLUSTER", "MEET", "127.0.0.1", c.Nodes[0].port)
		id := fmt.Sprint(master.Do("CLUSTER", "MYID"))
		eventually(c.t, "the replica knows its master", func() bool {
			_, err := r.do("CLUSTER", "REPLICATE", id)
			return err == nil
		})
		c.Replicas = append(c.Replicas, r)
	}
	for _, r := range c.Replicas {
		eventually(c.t, "the replica is in step", func() bool {
			return strings.Contains(fmt.Sprint(r.Do("INFO", "replication")), "master_link_status:up")
		})
	}
	for _, n := range c.Nodes {
		eventually(c.t, "the cluster knows the replicas", func() bool {
			return strings.Count(fmt.Sprint(n.Do("CLUSTER", "NODES")), "slave") == 3
		})
	}
}

// Promoted reports whether the i-th replica has taken over.
func (c *Cluster) Promoted(i int) bool {
	return strings.Contains(fmt.Sprint(c.Replicas[i].Do("INFO", "replication")), "role:master")
}

// eventually polls until cond holds, for at most 15 seconds.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("redistest: waited 15s in vain until %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
