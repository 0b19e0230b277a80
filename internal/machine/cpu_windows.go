package machine

import (
	"syscall"
	"time"
)

func cpuTime() (time.Duration, bool) {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, false
	}
	var created, exited, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(self, &created, &exited, &kernel, &user) != nil {
		return 0, false
	}
	return lasted(kernel) + lasted(user), true
}

// lasted is a duration, counted in units of 100 ns. Filetime.Nanoseconds reads the
// same bits as an instant.
func lasted(t syscall.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}
