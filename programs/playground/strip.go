package main

import "time"

const (
	columnWidth = 100 * time.Millisecond
	columns     = 240 // kept, 24 s
	binWidth    = 10 * time.Millisecond
)

// column is what began or was denied within one columnWidth.
type column struct{ atOnce, delayed, denied int }

// strip is what became of requests over the last columns, and the densest
// moments since it was made.
type strip struct {
	columns [columns]column
	current int // the column that time is in, counted from the beginning
	starts  density
}

func columnAt(at time.Duration) int { return int(at / columnWidth) }

// advance moves the strip to at, which never goes back.
func (s *strip) advance(at time.Duration) {
	s.starts.advance(int(at / binWidth))
	to := columnAt(at)
	for i := max(s.current+1, to-columns+1); i <= to; i++ {
		s.columns[i%columns] = column{}
	}
	s.current = to
}

func (s *strip) at() *column { return &s.columns[s.current%columns] }

// begin counts a request that starts now, having waited or not.
func (s *strip) begin(waited bool) {
	s.starts.add()
	if waited {
		s.at().delayed++
	} else {
		s.at().atOnce++
	}
}

// between returns the columns from until before to, as far as they are kept, as
// triples.
func (s *strip) between(from, to int) []int {
	from = max(from, s.current-columns+1, 0)
	triples := make([]int, 0, 3*max(to-from, 0))
	for i := from; i < to; i++ {
		c := s.columns[i%columns]
		triples = append(triples, c.atOnce, c.delayed, c.denied)
	}
	return triples
}

const binsPerSecond = int(time.Second / binWidth)

// density finds the most events within a tenth of a second and within a second,
// to one bin.
type density struct {
	bins          [binsPerSecond]int
	current       int
	tenth, second int // within the time that ends with the current bin
	Tenth, Second int // the most of them
}

func (d *density) advance(to int) {
	if to-d.current > binsPerSecond {
		d.bins, d.tenth, d.second = [binsPerSecond]int{}, 0, 0
		d.current = to
		return
	}
	for d.current < to {
		d.current++
		d.second -= d.bins[d.current%binsPerSecond]
		d.bins[d.current%binsPerSecond] = 0
		d.tenth -= d.bins[(d.current+binsPerSecond-binsPerSecond/10)%binsPerSecond]
	}
}

func (d *density) add() {
	d.bins[d.current%binsPerSecond]++
	d.tenth++
	d.second++
	d.Tenth, d.Second = max(d.Tenth, d.tenth), max(d.Second, d.second)
}

// restart forgets the most, but not the present.
func (d *density) restart() { d.Tenth, d.Second = d.tenth, d.second }
