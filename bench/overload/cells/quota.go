package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// quotas is the overload in a container that may use a part of the processors.
func quotas(r rig) error {
	fmt.Print("\n## Within a container's quota\n\nAnswers within 500 ms, as a share of the capacity within the quota; and p99 of them. At 0.85x also the rejections.\n\n| processors | handler | load | capacity, 1/s |", header(), "\n|---|---|---|---|", strings.Repeat("---|", len(limiters())), "\n")
	r.procs = 0
	for _, quota := range []float64{.5, 1, 1.5} {
		if err := inGroup(quota, func(group string) error {
			r.group = group
			for _, r.work = range []string{"500us", "5ms", "30ms"} {
				if err := r.underQuota(quota); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func (r rig) underQuota(quota float64) error {
	rate, err := r.capacity()
	if err != nil {
		return err
	}
	for _, times := range []float64{.85, 2, 5} {
		if err := r.row(fmt.Sprintf("| %g | %s | %gx | %.0f |", quota, r.work, times, rate), func(r rig) string {
			return r.overloaded(times, rate)
		}); err != nil {
			return err
		}
	}
	return nil
}

// cpuGroups are where groups with a quota can be made: version 1, version 2.
var cpuGroups = []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}

// inGroup makes a control group that may use so many processors for as long as do runs.
func inGroup(quota float64, do func(group string) error) error {
	const period = 100_000 // microseconds
	most := strconv.Itoa(int(quota * period))
	for _, root := range cpuGroups {
		group := filepath.Join(root, fmt.Sprintf("overload-%d", os.Getpid()))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		set := func(file, value string) error {
			f, err := os.OpenFile(filepath.Join(group, file), os.O_WRONLY, 0) // the kernel makes the files
			if err != nil {
				return err
			}
			_, err = f.WriteString(value)
			return errors.Join(err, f.Close())
		}
		if set("cpu.cfs_quota_us", most) != nil && set("cpu.max", most+" 100000") != nil {
			_ = os.Remove(group)
			continue
		}
		err := do(group)
		for range 100 { // until the last process has left it
			if os.Remove(group) == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		return err
	}
	return errors.New("no control group with a quota can be made here: it takes root and cgroups")
}
