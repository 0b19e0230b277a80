//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// inGroup gives cmd a process group of its own, and returns what ends all that
// is left of it: a test binary that crashes leaves its servers behind.
func inGroup(cmd *exec.Cmd) (end func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return func() {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
}
