// Package hostnic_test applies what hostnic's users have, the ConfigMap of their document, to a real control plane, and
// changes it as they do.
package hostnic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/controller"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
	"github.com/bcsnet/bcsnet/test/inprocess"
	"github.com/bcsnet/bcsnet/test/plugin"
)

const (
	host      = "10.0.0.11"
	configMap = "kube-system/hostnic-ipam-config"
)

var (
	cluster *controlplane.ControlPlane
	admin   client.Client
	caller  = &http.Client{Transport: &http.Transport{}}
)

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

var prepared = sync.OnceValue(func() (err error) {
	admin, err = cluster.Prepare(context.Background(), "hostnic")
	return err
})

// account is the identity that the controller has.
func account(t *testing.T) *rest.Config {
	t.Helper()
	if err := prepared(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(caller.CloseIdleConnections)
	cfg, err := cluster.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// site is one test: a controller, and where its metrics are.
type site struct {
	*testing.T
	*inprocess.Controller
	metrics string
}

// start runs a controller with --hostnic-ipam-config for one test. What the test leaves goes with it.
func start(t *testing.T, changes ...func(*controller.Options)) *site {
	t.Helper()
	cfg := account(t)
	metrics, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wipe(t) })
	return &site{t, inprocess.ForTest(t, cfg, func(o *controller.Options) {
		o.LeaderElect, o.HostnicIPAMConfig, o.MetricsBindAddress = false, configMap, metrics.String()
		for _, change := range changes {
			change(o)
		}
	}), "http://" + metrics.String()}
}

// wipe removes the ConfigMap and all pools by force, once no controller runs.
func wipe(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hostnic-ipam-config"}}
	errs := []error{client.IgnoreNotFound(admin.Delete(ctx, m))}
	var pools v1.BCSNetPoolList
	var leases v1.BCSNetIPList
	errs = append(errs, admin.List(ctx, &pools), admin.List(ctx, &leases))
	var all []client.Object
	for i := range pools.Items {
		all = append(all, &pools.Items[i])
	}
	for i := range leases.Items {
		all = append(all, &leases.Items[i])
	}
	for _, o := range all {
		noFinalizer := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		errs = append(errs, client.IgnoreNotFound(admin.Patch(ctx, o, noFinalizer)),
			client.IgnoreNotFound(admin.Delete(ctx, o)))
	}
	errs = append(errs, admin.DeleteAllOf(ctx, &eventsv1.Event{}, client.InNamespace("kube-system")))
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// pool makes a pool of a /24 of 172.16.0.0/16.
func (s *site) pool(name string, third int, change func(*v1.BCSNetPoolSpec)) {
	s.Helper()
	net := fmt.Sprintf("172.16.%d.", third)
	p := &v1.BCSNetPool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.BCSNetPoolSpec{
		Net: net + "0", Mask: 24, Gateway: net + "254", Hosts: []string{host}, AvailableIPs: []string{net + "0/24"},
	}}
	if change != nil {
		change(&p.Spec)
	}
	if err := admin.Create(s.Context(), p); err != nil {
		s.Fatal(err)
	}
}

func split(length int32) func(*v1.BCSNetPoolSpec) {
	return func(s *v1.BCSNetPoolSpec) { s.BlockSize = length }
}

// namespace makes a namespace for one test.
func (s *site) namespace(name string) {
	s.Helper()
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreAlreadyExists(admin.Create(s.Context(), n)); err != nil {
		s.Fatal(err)
	}
}

// says makes the ConfigMap hold a document.
func (s *site) says(document string) {
	s.Helper()
	m := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "hostnic-ipam-config"},
		Data:       map[string]string{"ipam": document},
	}
	err := admin.Create(s.Context(), m)
	if apierrors.IsAlreadyExists(err) {
		err = admin.Update(s.Context(), m)
	}
	if err != nil {
		s.Fatal(err)
	}
}

// blocks waits until the blocks that there are, by name, belong to whom they should, as in "test 1000" or "test 999
// cordoned".
func (s *site) blocks(want map[string]string) {
	s.Helper()
	controlplane.Eventually(s.T, func() error {
		var list v1.BCSNetPoolList
		if err := admin.List(s.Context(), &list); err != nil {
			return err
		}
		var errs []error
		n := 0
		for _, o := range list.Items {
			if o.Spec.Parent == "" {
				continue
			}
			n++
			got := fmt.Sprintf("%s %d", strings.Join(o.Spec.Namespaces, ","), o.Spec.Priority)
			if o.Spec.Cordoned {
				got += " cordoned"
			}
			if o.DeletionTimestamp != nil {
				got += " going"
			}
			if got != want[o.Name] {
				errs = append(errs, fmt.Errorf("block %s is %q, want %q", o.Name, got, want[o.Name]))
			}
		}
		if n != len(want) {
			errs = append(errs, fmt.Errorf("there are %d blocks, want %d", n, len(want)))
		}
		return errors.Join(errs...)
	})
}

// told waits for an event about the ConfigMap with some words in it.
func (s *site) told(reason, words string) {
	s.Helper()
	controlplane.Told(s.T, admin, "hostnic-ipam-config", reason, words)
}

// applied waits until the metric says whether namespaces have the blocks that the ConfigMap says.
func (s *site) applied(want int) {
	s.Helper()
	line := fmt.Sprintf("\nbcsnet_hostnic_config_applied %d\n", want)
	controlplane.Eventually(s.T, func() error {
		r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.metrics+"/metrics", nil)
		if err != nil {
			return err
		}
		resp, err := caller.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(text), line) {
			err = fmt.Errorf("the metrics lack %s", line)
		}
		return err
	})
}

// ask sends an ADD or a DEL for an owner in a namespace.
func (s *site) ask(method, namespace, owner string) plugin.Answer {
	s.Helper()
	a, err := plugin.Ask(s.Context(), caller, method, s.URL, wire.AllocateRequest{
		Host: host, ContainerID: "sandbox-" + namespace + "-" + owner, PodName: owner, PodNamespace: namespace,
	})
	if err != nil {
		s.Fatal(err)
	}
	return a
}

// configMap returns the ConfigMap.
func (s *site) configMap() *corev1.ConfigMap {
	s.Helper()
	m := &corev1.ConfigMap{}
	if err := admin.Get(s.Context(), types.NamespacedName{Namespace: "kube-system", Name: "hostnic-ipam-config"},
		m); err != nil {
		s.Fatal(err)
	}
	return m
}

// makePod makes a pod on no node, unless there is one of its name.
func (s *site) makePod(namespace, name string) {
	s.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if err := client.IgnoreAlreadyExists(admin.Create(s.Context(), p)); err != nil {
		s.Fatal(err)
	}
}

// add gives a pod an address, which is of a pool. It makes the pod where there is none.
func (s *site) add(namespace, pod, pool string) {
	s.Helper()
	s.makePod(namespace, pod)
	controlplane.Eventually(s.T, func() error {
		if a := s.ask(http.MethodPost, namespace, pod); a.Code != 0 || a.Address.Pool != pool {
			return fmt.Errorf("pod %s/%s wants pool %s: %s%+v", namespace, pod, pool, a.Message, a.Address)
		}
		return nil
	})
}
