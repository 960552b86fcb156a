package hostnic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestForbidden: the role is for one ConfigMap. Of another one the log says what is missing, and the controller serves.
func TestForbidden(t *testing.T) {
	s := start(t, func(o *controller.Options) { o.HostnicIPAMConfig = "kube-system/another" })
	controlplane.Eventually(t, func() error {
		const words = "ConfigMap kube-system/another: the API server has not told of it: may the controller read it? See " +
			"config/hostnic; the blocks stay as they are"
		if !strings.Contains(s.Log.String(), words) {
			return fmt.Errorf("the log lacks %q", words)
		}
		return nil
	})
	s.applied(0)
	s.namespace("other")
	s.pool("vxnet-b", 4, nil)
	s.add("other", "one", "vxnet-b")
}

// TestKept: a block whose namespace is not there stays while the ConfigMap names it; any other is taken back.
func TestKept(t *testing.T) {
	s := start(t, func(o *controller.Options) { o.AbandonedFor = time.Second })
	s.pool("vxnet-c", 6, split(28))
	byHand := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "vxnet-c-172-16-6-32-28"}, Spec: v1.BCSNetPoolSpec{
		Net: "172.16.6.0", Mask: 24, Gateway: "172.16.6.254", Parent: "vxnet-c", AvailableIPs: []string{"172.16.6.32/28"},
		Namespaces: []string{"nobody"},
	}}
	const kept = "vxnet-c-172-16-6-16-28"
	s.says(`{"nobody":["4100-172-16-6-16-28"]}`)
	s.blocks(map[string]string{kept: "nobody 1000"})
	if err := admin.Create(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	s.blocks(map[string]string{kept: "nobody 1000", byHand.Name: "nobody 0 going"})
	s.blocks(map[string]string{kept: "nobody 1000"})

	// A pool that is deleted takes its blocks with it, whoever names them.
	parent := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: "vxnet-c"}}
	if err := admin.Delete(t.Context(), parent); err != nil {
		t.Fatal(err)
	}
	s.told(v1.ReasonHostnicConfigDiffers, "subnet 4100-172-16-6-16-28 of namespace nobody: block "+kept+
		" is being deleted")
	s.blocks(nil)
	s.told(v1.ReasonHostnicConfigDiffers, "no pool is split into blocks of which 172.16.6.16/28 is one")
}

// TestFlagGoes: a controller without the flag treats the blocks of a ConfigMap as any others: they go an hour after
// their namespaces, here a second, and at once where the ConfigMap had given them up.
func TestFlagGoes(t *testing.T) {
	controlplane.TakesLong(t)
	s := start(t, func(o *controller.Options) { o.AbandonedFor = time.Second })
	s.namespace("lives")
	s.pool("vxnet-d", 7, split(28))
	const abandoned, stays, given = "vxnet-d-172-16-7-16-28", "vxnet-d-172-16-7-32-28", "vxnet-d-172-16-7-48-28"
	s.says(`{"nobody":["4100-172-16-7-16-28"],"lives":["4100-172-16-7-32-28","4100-172-16-7-48-28"]}`)
	s.blocks(map[string]string{abandoned: "nobody 1000", stays: "lives 1000", given: "lives 999"})
	s.add("lives", "full", stays)
	held := map[string]string{}
	for i := range 15 { // with the first they fill a block of 16
		name := fmt.Sprintf("more-%d", i)
		s.makePod("lives", name)
		held[name] = s.ask(http.MethodPost, "lives", name).Address.Pool
	}
	s.add("lives", "beyond", given)
	s.says(`{"nobody":["4100-172-16-7-16-28"],"lives":["4100-172-16-7-32-28"]}`)
	s.blocks(map[string]string{abandoned: "nobody 1000", stays: "lives 1000", given: "lives 999 cordoned"})
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}

	s = start(t, func(o *controller.Options) { o.HostnicIPAMConfig, o.AbandonedFor = "", time.Second })
	s.blocks(map[string]string{stays: "lives 1000", given: "lives 999 cordoned"})
	for name, pool := range held {
		if pool == given {
			s.ask(http.MethodDelete, "lives", name)
		}
	}
	s.ask(http.MethodDelete, "lives", "beyond")
	s.blocks(map[string]string{stays: "lives 1000"})
}

// TestFoundBlock: a block that a namespace got by itself is drawn from in the order of the list while that names it,
// and is as it was when it does so no more.
func TestFoundBlock(t *testing.T) {
	s := start(t)
	s.namespace("early")
	s.pool("vxnet-e", 8, func(o *v1.BCSNetPoolSpec) { o.BlockSize, o.AutoAssign = 28, true })
	found := s.firstOf("vxnet-e", "early")
	s.blocks(map[string]string{found: "early 0"})
	s.says(`{"early":["4100-` + strings.TrimPrefix(found, "vxnet-e-") + `"]}`)
	s.blocks(map[string]string{found: "early 1000"})
	s.says(`{"early":[]}`)
	s.blocks(map[string]string{found: "early 0"})
	s.add("early", "again", found)
}
