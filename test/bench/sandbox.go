package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// sandboxes returns, of the pods of all turns, how long containerd took from the kubelet's request until the sandbox
// had its network, by its log.
func (m *podMeter) sandboxes(ready map[string][]time.Duration) (map[string][]time.Duration, error) {
	f, err := os.Open(filepath.Join(m.Cluster.LogDir, "n1-containerd.log"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	took, err := sandboxTimes(bufio.NewScanner(f))
	if err != nil {
		return nil, err
	}
	all := map[string][]time.Duration{}
	for network, times := range ready {
		for i := range times {
			name := turnPod(network, i+1)
			if _, ok := took[name]; !ok {
				return nil, fmt.Errorf("%s has no line about the end of the sandbox of %s", f.Name(), name)
			}
			all[network] = append(all[network], took[name])
		}
	}
	return all, nil
}

// sandboxTimes reads from a log of containerd how long it took from the first begin of a sandbox of each pod to its
// end.
func sandboxTimes(log *bufio.Scanner) (map[string]time.Duration, error) {
	line := regexp.MustCompile(`^time="([^"]+)".* msg="RunPodSandbox for name:\\"([^"\\]+)\\"` +
		`.*?( returns sandbox id .*)?$`)
	began, took := map[string]time.Time{}, map[string]time.Duration{}
	for log.Scan() {
		m := line.FindStringSubmatch(log.Text())
		if m == nil {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, m[1])
		if err != nil {
			return nil, err
		}
		name := m[2]
		if _, known := began[name]; !known {
			began[name] = at
		}
		if m[3] != "" {
			took[name] = at.Sub(began[name])
		}
	}
	return took, log.Err()
}
