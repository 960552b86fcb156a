//go:build linux

package bed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies returns the directories below which a cgroup has to be made: one for all controllers with version 2, one
// for each controller with version 1.
func hierarchies() []string {
	var root unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &root); err == nil && root.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroupRoot}
	}
	return slices.DeleteFunc(globbed(cgroupRoot+"/*"), func(dir string) bool {
		info, err := os.Lstat(dir) // cpu and cpuacct may be links to one hierarchy
		return err != nil || !info.IsDir() || filepath.Base(dir) == "unified"
	})
}

// cgroupsLike returns the cgroups of names in all hierarchies, and in the unified one beside those of version 1, where
// runc makes them as well.
func cgroupsLike(pattern string) []string {
	return append(globbed(filepath.Join(cgroupRoot, pattern)), globbed(filepath.Join(cgroupRoot, "*", pattern))...)
}

// makeCgroup makes a cgroup in each hierarchy, in which others can be made.
func makeCgroup(name string) error {
	for _, h := range hierarchies() {
		dir := filepath.Join(h, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Version 1 leaves these empty, and refuses processes until they are filled.
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
			above, err := os.ReadFile(filepath.Join(h, file))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, file), above, 0o644)
			}
			if err != nil {
				return fmt.Errorf("fill the cpuset of %s: %w", dir, err)
			}
		}
		if err := delegate(h, dir); err != nil {
			return err
		}
	}
	return nil
}

// delegate makes the controllers of version 2 available below a cgroup; with version 1 there is nothing to do.
func delegate(root, dir string) error {
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var wanted strings.Builder
	for name := range strings.FieldsSeq(string(controllers)) {
		wanted.WriteString("+" + name + " ")
	}
	for _, d := range []string{root, dir} {
		if err := os.WriteFile(filepath.Join(d, "cgroup.subtree_control"), []byte(wanted.String()), 0o644); err != nil {
			return fmt.Errorf("make the controllers %savailable below %s: %w", wanted.String(), d, err)
		}
	}
	return nil
}

// removeCgroups removes cgroups with all that is below them. Their processes have been killed, and may need a moment to
// go.
func removeCgroups(pattern string) (err error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); <-tick.C {
		err = nil
		for _, dir := range cgroupsLike(pattern) {
			err = errors.Join(err, removeTree(dir))
		}
		if err == nil {
			return nil
		}
	}
	return err
}

// removeTree removes a cgroup from its leaves to itself. Their files go with the directories.
func removeTree(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return nil // what has just gone needs no removal
	})
	for _, d := range slices.Backward(dirs) {
		if e := unix.Rmdir(d); e != nil && !errors.Is(e, unix.ENOENT) {
			err = errors.Join(err, fmt.Errorf("remove the cgroup %s: %w", d, e))
		}
	}
	return err
}
