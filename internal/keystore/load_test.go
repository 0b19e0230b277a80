package keystore

import (
	"strconv"
	"testing"
)

func TestLoad(t *testing.T) {
	for _, evict := range []bool{false, true} {
		var s Store[int64, struct{}]
		s.Init(Config{MaxKeys: 1, Evict: evict}, nil)
		set := func(key string, word int64) Result {
			_, r := s.Update(key, Fresh, func(State[int64], int64) (int64, int64, bool) { return word, 0, true })
			return r
		}
		later := s.Clock.Now() + ToTicks(1<<40)
		set("", 1)
		set("k", later)
		if s.Load("") != 1 || s.Load("k") != later || s.Load("other") != 0 {
			t.Fatal(s.Load(""), s.Load("k"), s.Load("other"))
		}
		for i := 0; ; i++ { // until the table is full
			key := strconv.Itoa(i)
			before := s.Overflowed()
			set(key, later+int64(i))
			if s.Overflowed() == before {
				continue
			}
			if got := s.Load(key); evict != (got == later+int64(i)) {
				t.Fatal("a key without room", evict, got)
			}
			break
		}
	}
}
