package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/leasing"
)

const whereaboutsThree = `
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: lan, namespace: default}
spec:
  config: '{"cniVersion":"1.0.0","name":"lan","type":"macvlan","ipam":{"type":"whereabouts","range":"10.1.0.20-10.1.0.89/24"}}'
---
apiVersion: whereabouts.cni.cncf.io/v1alpha1
kind: IPPool
metadata: {name: 10.1.0.0-24, namespace: default}
spec:
  range: 10.1.0.0/24
  allocations: {"20": {id: c-web, podref: default/web}, "21": {id: c-job, podref: default/job}, "22": {id: c-db, podref: default/db}}
`

// TestRevertNamesEachPod: what pods got here since stays with them, and each of these pods is named, also those beyond
// the lines that are listed, in the dry run as well. When they are gone, the same command does the rest.
func TestRevertNamesEachPod(t *testing.T) {
	f := newFixture(t)
	if err := f.wipe(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.haveObjects(t, crd("whereabouts.cni.cncf.io", "v1alpha1", "IPPool", "ippools", "Namespaced")+
		crd("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced"),
		whereaboutsThree)
	_, stderr := f.call(t, "import", "whereabouts", "--yes")
	contains(t, stderr, "read back: 3 addresses match Whereabouts")

	// The pod of the second address got another container, by us; others got their first address here.
	stay := map[string]string{"10.1.0.21": "default/job"}
	for i := range leasing.MaxLines + 5 {
		stay[fmt.Sprintf("10.1.0.%d", 30+i)] = fmt.Sprintf("default/new-%d", i)
	}
	args := []string{"ip", "release", "--force", "--yes"}
	for address, pod := range stay {
		if err := f.lease(t.Context(), nil, []string{address, "lan", "10.0.0.11", pod}); err != nil {
			t.Fatal(err)
		}
		args = append(args, address)
	}
	if err := f.lease(t.Context(), nil, []string{"10.1.0.80", "lan", "10.0.0.11", "reserved"}); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--dry-run=client", "--yes"} {
		stdout, stderr := f.call(t, "import", "revert", "whereabouts", flag, "-o", "name")
		contains(t, stderr, "to take back: 0 pools, 0 claims, 2 addresses", "✗ 28 objects of the import stay, "+
			"BCSNetIP 10.1.0.21 first", "and 8 more objects", "among them the addresses of default/new-19, ")
		for _, address := range []string{"10.1.0.20", "10.1.0.22"} {
			contains(t, stdout, "/"+address+"\n")
		}
		if n := strings.Count(stdout, "\n"); n != 2 {
			t.Errorf("%d addresses are given back, want 2:\n%s", n, stdout)
		}
		lines := strings.Count(stderr, "got it here since")
		for address, pod := range stay {
			line := fmt.Sprintf("! BCSNetIP %s stays: %s got it here since\n", address, pod)
			if !strings.Contains(stderr, line) && !regexp.MustCompile(pod+"[,\n]").MatchString(stderr) {
				t.Errorf("%s, which has %s, is not named:\n%s", pod, address, stderr)
			}
		}
		if lines != leasing.MaxLines {
			t.Errorf("%d lines are listed, want %d", lines, leasing.MaxLines)
		}
	}
	for address, pod := range stay {
		var ip v1.BCSNetIP
		if err := f.client.Get(t.Context(), client.ObjectKey{Name: address}, &ip); err != nil {
			t.Fatal(err)
		}
		if got := ip.Status.PodNamespace + "/" + ip.Status.PodName; ip.Status.Status != v1.IPActive || got != pod {
			t.Errorf("%s is %s of %s, want it with %s", address, ip.Status.Status, got, pod)
		}
	}

	// The pods are gone, and nothing is set aside by hand any more.
	f.call(t, args...)
	f.call(t, "ip", "unreserve", "10.1.0.80")
	_, stderr = f.call(t, "import", "revert", "whereabouts", "--yes")
	contains(t, stderr, "deletion of pool lan requested")
	if strings.Contains(stderr, "stay") {
		t.Errorf("something stays:\n%s", stderr)
	}
}
