package admin

import (
	"sync"
	"time"
)

// mostMarks bounds the marks on the time axis. The oldest gives way.
const mostMarks = 32

// marks are the operators' actions and their times, for the time axis of the
// page.
type marks struct {
	mu  sync.Mutex
	all []mark
}

type mark struct {
	second uint32
	text   string
}

func (m *marks) add(second uint32, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == mostMarks {
		m.all = append(m.all[:0], m.all[1:]...)
	}
	m.all = append(m.all, mark{second, text})
}

// Mark puts a mark on the time axis, such as "deployed 1.4", of at most 256
// bytes; the last 32 are kept. Update and the actions of operators make marks by
// themselves.
func (a *Admin) Mark(text string) { a.marks.add(a.second(time.Now()), clip(text)) }

type markState struct {
	Second uint32 `json:"second"`
	Text   string `json:"text"`
}

func (s *state) addMarks(m *marks) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, one := range m.all {
		if one.second+span >= s.To {
			s.Marks = append(s.Marks, markState{one.second, one.text})
		}
	}
}
