package learn

import (
	"fmt"
	"time"
)

// Stats describes one key of a [Learner], or all keys in use together: the sums of their rates and
// counts, the longest wait and the latest answer.
type Stats struct {
	// Rate is the rate in force, in units a second.
	Rate float64
	// Wait is how long no call may start, because the server asked for it.
	Wait time.Duration
	// Waits counts the server's requests to wait, Denied the denied units.
	Waits, Denied int64
	// Taught is the last answer that denied, asked to wait, or stated another rate than before;
	// zero if none did.
	Taught Answer
}

// Count counts an answer in Waits, Denied and Taught.
func (s *Stats) Count(a Answer) {
	if a.Wait > 0 {
		s.Waits++
	}
	if a.Denied {
		s.Denied += max(a.Units, 1)
	}
	if a.Denied || a.Wait > 0 || a.Rate > 0 && a.Rate != s.Taught.Rate {
		s.Taught = a
	}
}

// String returns a line for operators, such as "27.9 a second, 2 units denied, 1 wait; at 15:04:05
// a denial asked for 2s".
func (s Stats) String() string {
	text := fmt.Sprintf("%.3g a second", s.Rate)
	if s.Wait > 0 {
		text += fmt.Sprintf(", not before %v", s.Wait.Round(time.Millisecond))
	}
	a := s.Taught
	if a.Sent.IsZero() {
		return text
	}
	text += fmt.Sprintf(", %d denied, %d waits; at %s an answer", s.Denied, s.Waits, a.Sent.UTC().Format(time.TimeOnly))
	if a.Denied {
		text += " denied"
	}
	if a.Wait > 0 {
		text += fmt.Sprintf(", asked for %v", a.Wait.Round(time.Millisecond))
	}
	if a.Rate > 0 {
		text += fmt.Sprintf(", stated %.3g a second", a.Rate)
	}
	return text
}
