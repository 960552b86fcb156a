// Package floatingip_test applies what galaxy's users have, the ConfigMap and the Deployment of their document, to a
// real control plane with a scheduler, and calls the allocator as their plugin would.
package floatingip_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/plugin"
)

var (
	cluster    *controlplane.ControlPlane
	controller *controlplane.Controller
	admin      client.Client
	listen     netip.AddrPort // where the controller serves, known to the scheduler before
	caller     = &http.Client{Transport: &http.Transport{}}
)

// eniIP is the resource by which galaxy's pods ask for an address, ourIP the other one. The scheduler sends whole nodes
// with its questions about ourIP, by plain HTTP, and names with the others, over HTTPS with a client certificate.
const (
	eniIP corev1.ResourceName = "tke.cloud.tencent.com/eni-ip"
	ourIP corev1.ResourceName = "netservice.bkbcs.tencent.com/bcsnetip"
)

func TestMain(m *testing.M) {
	var err error
	if listen, err = controlplane.FreeAddress(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(controlplane.Main(m, &cluster, controlplane.WithControllerManager(), controlplane.WithKwok(),
		controlplane.WithSecureExtender("https://"+listen.String()+"/v1", string(eniIP)),
		controlplane.WithWholeNodeExtender("http://"+listen.String()+"/v1", string(ourIP))))
}

// prepared starts the controller with the rights that config/floatingip adds.
var prepared = sync.OnceValue(func() (err error) {
	ctx := context.Background()
	if admin, err = cluster.Prepare(ctx, "floatingip"); err != nil {
		return err
	}
	if out, err := cluster.Kubectl(ctx, "create", "clusterrolebinding", "bcsnet-scheduler", "--clusterrole=bcsnet-scheduler",
		"--user="+controlplane.SchedulerUser).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	certFile, keyFile, err := cluster.AllocatorCertificate()
	if err != nil {
		return err
	}
	controller, err = cluster.StartController(ctx,
		controlplane.ControllerOptions{
			HTTPAddress: listen.String(), Args: []string{
				"--shared-pools-for-all", "--floatingip-config", "kube-system/floatingip-config", "--tls-cert-file", certFile, "--tls-private-key-file", keyFile,
			},
		})
	return err
})

func prepare(t *testing.T) {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.CloseIdleConnections)
}

// document makes the ConfigMap hold a document.
func document(t *testing.T, text string) {
	t.Helper()
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "floatingip-config"},
		Data:       map[string]string{"floatingips": text},
	}
	err := admin.Create(t.Context(), m)
	if apierrors.IsAlreadyExists(err) {
		err = admin.Update(t.Context(), m)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// pools waits until the pools that there are, and what a check says of each, are as wanted.
func pools(t *testing.T, want map[string]func(*v1.BCSNetPool) error) {
	t.Helper()
	controlplane.Eventually(t, func() error {
		var list v1.BCSNetPoolList
		if err := admin.List(t.Context(), &list); err != nil {
			return err
		}
		var names []string
		var errs []error
		for i := range list.Items {
			o := &list.Items[i]
			names = append(names, o.Name)
			if check := want[o.Name]; check != nil {
				errs = append(errs, check(o))
			}
			if o.Status.ObservedGeneration != o.Generation {
				errs = append(errs, fmt.Errorf("pool %s has not been looked at", o.Name))
			}
		}
		if len(names) != len(want) {
			errs = append(errs, fmt.Errorf("there are the pools %v, want %d", names, len(want)))
		}
		return errors.Join(errs...)
	})
}

// is checks what of a pool the document says: "10.0.70.1 vlan 2, 10.0.70.2~10.0.70.241, for 10.0.0.0/16", with
// "cordoned" behind it where it is.
func is(want string) func(*v1.BCSNetPool) error {
	return func(o *v1.BCSNetPool) error {
		s := o.Spec
		got := fmt.Sprintf("%s vlan %d, %s, for %s", s.Gateway, s.VLAN, strings.Join(s.AvailableIPs, " "),
			strings.Join(s.HostSubnets, " "))
		if s.Cordoned {
			got += ", cordoned"
		}
		if got != want {
			return fmt.Errorf("pool %s is %q, want %q", o.Name, got, want)
		}
		return nil
	}
}

// told waits for an event about the ConfigMap with some words in it.
func told(t *testing.T, reason, words string) {
	t.Helper()
	controlplane.Told(t, admin, "floatingip-config", reason, words)
}

// ask sends an ADD or a DEL for a pod on a host.
func ask(t *testing.T, method, host, pod string) plugin.Answer {
	t.Helper()
	a, err := plugin.Ask(t.Context(), caller, method, controller.URL, wire.AllocateRequest{
		Host: host, ContainerID: "sandbox-" + pod, PodName: pod, PodNamespace: "default",
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newPod makes a pod that may ask for an address, on no node.
func newPod(t *testing.T, name string) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	controlplane.Eventually(t, func() error { return admin.Create(t.Context(), p) }) // its ServiceAccount comes by itself
	t.Cleanup(func() { _ = admin.Delete(context.Background(), p, client.GracePeriodSeconds(0)) })
}
