package main

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// apart gives the API server and etcd the first half of the processors and all others the rest, as on machines of their
// own; or all processors to all again. ok is false where there is only one.
func apart(yes bool) (ok bool, err error) {
	var all, stores, others unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getppid(), &all); err != nil { // which nobody has moved
		return false, err
	}
	n := all.Count()
	for cpu, seen := 0, 0; seen < n; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if seen++; seen <= n/2 {
			stores.Set(cpu)
		} else {
			others.Set(cpu)
		}
	}
	list, err := processes()
	if err != nil || n < 2 {
		return false, err
	}
	for _, p := range list {
		to := &others
		switch {
		case !yes:
			to = &all
		case p.name == "kube-apiserver" || p.name == "etcd":
			to = &stores
		}
		threads, err := filepath.Glob("/proc/" + p.id + "/task/[0-9]*")
		if err != nil {
			return false, err
		}
		for _, path := range threads {
			id, err := strconv.Atoi(filepath.Base(path))
			if err != nil {
				return false, err
			}
			if err := unix.SchedSetaffinity(id, to); err != nil {
				if _, gone := os.Stat(path); gone == nil {
					return false, err
				}
			}
		}
	}
	return true, nil
}
