package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// quotas is the overload in a container that may use a part of the processors.
func quotas(r rig) {
	begin("Within a container's quota\n\nAnswers within 500 ms, as a share of the capacity within the quota; p99 of them; and the rejections at 0.85x, else the requests without an answer.",
		"processors", "handler", "load", "capacity, 1/s")
	r.procs = 0
	for _, quota := range []float64{.5, 1, 1.5} {
		r.try(func() error {
			return inGroup(quota, func(group string) error {
				r.group = group
				for _, r.work = range []string{"500us", "5ms", "30ms"} {
					r.overloads(fmt.Sprint(quota))
				}
				return *r.failure
			})
		})
	}
}

// cpuGroups are where groups with a quota can be made: version 1, version 2.
var cpuGroups = []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}

// inGroup makes a control group that may use so many processors for as long as do runs.
func inGroup(quota float64, do func(group string) error) error {
	most := strconv.Itoa(int(quota * 100_000)) // of 100 000 microseconds
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
