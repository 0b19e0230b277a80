package sim

import (
	"fmt"
	"os"
	"path/filepath"
)

// meter writes the use of the simulated processors to files in the format of Linux
// (HOST_PROC, HOST_ROOT), which package adaptive reads. So the signal under test is
// the one that services use, with its own sampling.
type meter struct {
	root        string
	stat, group *os.File
}

const (
	ticks      = 100 // of /proc/stat, a second
	groupMount = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
)

func (m *meter) open(w *world) (err error) {
	if m.root, err = os.MkdirTemp("", "sim"); err != nil {
		return err
	}
	quota := 0.0
	if s, ok := w.Model.(Sharing); ok {
		quota = s.Quota
	}
	files := map[string]string{"proc/self/cgroup": "0::/app\n", "proc/self/mountinfo": groupMount}
	if quota > 0 {
		files["sys/fs/cgroup/app/cpu.max"] = fmt.Sprintf("%d 100000\n", int(quota*100000))
	}
	for name, text := range files {
		if err := m.file(name, text); err != nil {
			return err
		}
	}
	if m.stat, err = m.create("proc/stat"); err != nil {
		return err
	}
	if quota > 0 {
		if m.group, err = m.create("sys/fs/cgroup/app/cpu.stat"); err != nil {
			return err
		}
	}
	for name, dir := range map[string]string{"HOST_PROC": "proc", "HOST_ROOT": ""} {
		if err := os.Setenv(name, filepath.Join(m.root, dir)); err != nil {
			return err
		}
	}
	m.write(w)
	return nil
}

func (m *meter) file(name, text string) error {
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func (m *meter) create(name string) (*os.File, error) {
	if err := m.file(name, ""); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(m.root, name))
}

// write overwrites the last figures, in fields of a fixed width.
func (m *meter) write(w *world) {
	if m.stat == nil {
		return
	}
	used := float64(w.server.cpu()) / 1e9
	all := float64(w.Cores) * float64(w.now) / 1e9
	busy := used + w.Neighbour*all
	if w.Greedy {
		busy = all
	}
	b, idle := int(busy*ticks), int(max(all-busy, 0)*ticks)
	m.put(m.stat, fmt.Sprintf("cpu %19d 0 0 %19d 0 0 0 0 0 0\n", b, idle))
	if m.group != nil {
		m.put(m.group, fmt.Sprintf("usage_usec %19d\n", int64(used*1e6)))
	}
}

// put ignores an error: a signal that cannot be read is part of the trial.
func (m *meter) put(f *os.File, text string) { _, _ = f.WriteAt([]byte(text), 0) }

func (m *meter) close() {
	for _, f := range []*os.File{m.stat, m.group} {
		if f != nil {
			_ = f.Close()
		}
	}
	_ = os.Unsetenv("HOST_PROC")
	_ = os.Unsetenv("HOST_ROOT")
	_ = os.RemoveAll(m.root)
	*m = meter{}
}
