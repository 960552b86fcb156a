package attacks_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestPlainCallersAreWrittenDown: who is answered by plain HTTP stands in a ConfigMap, with those that other replicas
// or an earlier life have written there. Who is refused does not, and neither does the own machine.
func TestPlainCallersAreWrittenDown(t *testing.T) {
	w := &world{}
	key := client.ObjectKey{Namespace: controlplane.SystemNamespace, Name: doctor.PlainCallersName}
	others := map[string]time.Time{
		"10.9.9.9": time.Now().Add(-time.Hour), "10.9.9.8": time.Now().Add(-25 * time.Hour),
	}
	var o corev1.ConfigMap
	controlplane.Eventually(t, func() error { // a replica may write meanwhile
		if err := shared.admin.Get(t.Context(), key, &o); err != nil {
			return err
		}
		for host, at := range others {
			o.Data[host] = at.UTC().Format(time.RFC3339)
		}
		return shared.admin.Update(t.Context(), &o)
	})
	before, err := doctor.ParsePlainCallers(o.Data)
	if err != nil {
		t.Fatal(err)
	}
	page := ask{method: "GET", path: "/readyz"}
	w.send(t, page.elsewhere("127.0.0.8"))
	own, refused := page, page.elsewhere("127.0.0.10")
	own.plain, own.source, refused.to = true, "127.0.0.11", shared.strict
	w.send(t, own)
	w.send(t, refused)
	controlplane.Eventually(t, func() error {
		if err := shared.admin.Get(t.Context(), key, &o); err != nil {
			return err
		}
		now, err := doctor.ParsePlainCallers(o.Data)
		if err != nil {
			return err
		}
		for host, want := range map[string]bool{
			"127.0.0.8": true, "10.9.9.9": true, "10.9.9.8": false, "127.0.0.10": false, "127.0.0.11": false,
		} {
			if _, ok := now.Hosts[netip.MustParseAddr(host)]; ok != want {
				return fmt.Errorf("%s is there: %t", host, ok)
			}
		}
		if !now.Since.Equal(before.Since) {
			return errors.New("the memory has begun anew")
		}
		return nil
	})
}
