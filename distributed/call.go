package distributed

import "context"

// call sends e and waits for the answer. True: e has one, which may be an
// error, and belongs to the caller. False: there is none, and e is gone.
func (s *Store) call(ctx context.Context, e *entry) bool {
	l := s.router.lane(e.keys[0])
	if !l.breaker.allow() || !l.submit(e) {
		e.free()
		return false
	}
	return l.wait(ctx, e)
}

// tell sends e and waits for nothing. While the node is away it is lost: what
// it would have given back stays charged, which is the safe side.
func (s *Store) tell(e *entry) {
	e.alone = true
	l := s.router.lane(e.keys[0])
	if !l.breaker.allow() || !l.submit(e) {
		e.free()
	}
}
