package loadgen

import (
	"fmt"
	"sync"
)

// idleConns are the connections without a request. The one that was used last is taken first,
// as net/http does: the server's memory for it is still in the cache.
type idleConns struct {
	mu  sync.Mutex
	all []*conn
}

func (i *idleConns) push(c *conn) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.all = append(i.all, c)
}

// pop takes one, or returns nil.
func (i *idleConns) pop() *conn {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.all) - 1
	if last < 0 {
		return nil
	}
	c := i.all[last]
	i.all = i.all[:last]
	return c
}

// openIdle opens n connections. Were there none when an overload begins, each request
// of its first moments would open one; a new connection costs the generator more than
// the request, so it would fall behind and open ever more, and measure itself.
func (g *generator) openIdle(n int) error {
	for range n {
		nc, err := g.dial()
		if err != nil {
			g.close()
			return fmt.Errorf("loadgen: opening a connection before the load: %w", err)
		}
		c := &conn{Conn: nc}
		g.serve(c, g.readAnswers)
		g.idle.push(c)
	}
	return nil
}
