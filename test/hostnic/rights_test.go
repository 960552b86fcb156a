package hostnic_test

import (
	"fmt"
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
