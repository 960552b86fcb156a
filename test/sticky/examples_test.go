package sticky_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// example is a manifest of the folder examples, and what its comment promises.
type example struct {
	file    string
	objects []*unstructured.Unstructured
	// claim is where the claim is; empty for none.
	claim  types.NamespacedName
	policy v1.ReleasePolicy
	// count is the number of addresses in use: all of these if the comment names them.
	count     int
	addresses []string
}

// promise is the sentence in the comment of an example.
var promise = regexp.MustCompile(
	`(?m)^# You get: (?:claim (?:(\S+)/)?(\S+), policy (\w+)|no claim), (?:(\d+) address(?:es)?|one address on each node)(?:: ([0-9., ]+))?\.$`)

// pools reports whether the example shows pools, of which a workload gets nothing by itself.
func (e example) pools() bool { return strings.HasPrefix(e.file, "pool") }

const exampleNamespace = "examples"

// examples: whatever the folder examples shows is accepted as it is written, and does what it says.
func (f *fixture) examples(t *testing.T) {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "examples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: exampleNamespace}})
	eventually(t, "its ServiceAccount", func() error {
		return f.admin.Get(t.Context(), client.ObjectKey{Namespace: exampleNamespace, Name: "default"},
			&corev1.ServiceAccount{})
	})
	readme, err := os.ReadFile(filepath.Join(root, "examples", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	strict := client.WithFieldValidation(f.admin, metav1.FieldValidationStrict)
	var all []example
	var pools []*unstructured.Unstructured
	for _, file := range files {
		e := readExample(t, file)
		if !strings.Contains(string(readme), "("+e.file+")") {
			t.Errorf("the README does not name %s", e.file)
		}
		for _, o := range e.objects {
			f.place(t, o)
			if err := strict.Create(t.Context(), o); err != nil {
				t.Fatalf("%s: %v", e.file, err)
			}
			f.play(t, o)
			if o.GetKind() == "BCSNetPool" {
				pools = append(pools, o)
			}
		}
		if !e.pools() {
			all = append(all, e)
		}
	}
	for _, e := range all {
		eventually(t, e.file, func() error { return f.keepsPromise(t, e) })
	}
	for _, p := range pools {
		eventually(t, "pool "+p.GetName(), func() error { return f.fits(t, p.GetName()) })
	}
}

// fits says what is wrong with the pool of an example beside those of all others. That no host of this test draws from
// it is not.
func (f *fixture) fits(t *testing.T, name string) error {
	t.Helper()
	var p v1.BCSNetPool
	if err := f.admin.Get(t.Context(), client.ObjectKey{Name: name}, &p); err != nil {
		return err
	}
	ready := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionReady)
	switch overlap := meta.FindStatusCondition(p.Status.Conditions, v1.ConditionOverlap); {
	case ready == nil || ready.ObservedGeneration != p.Generation:
		return errors.New("nobody has looked at it")
	case ready.Reason == v1.ReasonInvalidSpec || ready.Reason == v1.ReasonInvalidParent:
		return errors.New(ready.Message)
	case overlap != nil && overlap.Status == metav1.ConditionTrue:
		return errors.New(overlap.Message)
	}
	return nil
}

func readExample(t *testing.T, path string) example {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	e := example{file: filepath.Base(path), count: replicas} // as many as there are nodes
	documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(string(text)), 4096)
	for {
		o := &unstructured.Unstructured{}
		if documents.Decode(o) != nil { // what is missing then keeps no promise
			break
		}
		e.objects = append(e.objects, o)
	}
	says := promise.FindStringSubmatch(string(text))
	switch {
	case e.pools():
		return e
	case says == nil:
		t.Fatalf("%s does not say what one gets", e.file)
	}
	if says[2] != "" {
		e.claim, e.policy = types.NamespacedName{Namespace: cmp.Or(says[1], exampleNamespace), Name: says[2]},
			v1.ReleasePolicy(says[3])
	}
	if says[4] != "" {
		e.count, _ = strconv.Atoi(says[4]) // digits alone
	}
	if says[5] != "" {
		e.addresses = strings.Split(says[5], ", ")
	}
	return e
}

// podTemplates are where kinds have theirs.
var podTemplates = map[string][]string{
	"Pod": {}, "CronJob": {"spec", "jobTemplate", "spec", "template"},
	"Deployment": {"spec", "template"}, "StatefulSet": {"spec", "template"}, "DaemonSet": {"spec", "template"}, "Job": {"spec", "template"},
}

// place has the pods run on nodes of this test.
func (f *fixture) place(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	if o.GetKind() != "BCSNetPool" {
		o.SetNamespace(exampleNamespace)
	}
	if at, ok := podTemplates[o.GetKind()]; ok {
		if err := unstructured.SetNestedStringMap(o.Object, map[string]string{nodesLabel: sharedNodes},
			slices.Concat(at, []string{"spec", "nodeSelector"})...); err != nil {
			t.Fatal(err)
		}
	}
}

// play does what others would do: a CronJob's time comes, and the operators of TApps and virtual machines make pods.
func (f *fixture) play(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	switch o.GetKind() {
	case "CronJob":
		var job batchv1.CronJob
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &job); err != nil {
			t.Fatal(err)
		}
		made := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: exampleNamespace, Name: job.Name + "-29384754"},
			Spec:       job.Spec.JobTemplate.Spec,
		}
		f.create(t, ownedBy(o, made))
	case "TApp":
		n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		for i := range n {
			f.create(t, podOf(t, o, fmt.Sprintf("%s-%d", o.GetName(), i), nil))
		}
	case "VirtualMachine":
		vmi := &unstructured.Unstructured{}
		vmi.SetGroupVersionKind(o.GroupVersionKind().GroupVersion().WithKind("VirtualMachineInstance"))
		vmi.SetNamespace(exampleNamespace)
		vmi.SetName(o.GetName())
		f.create(t, ownedBy(o, vmi))
		p := podOf(t, o, "virt-launcher-"+o.GetName()+"-x7k2p", map[string]string{"vm.kubevirt.io/name": o.GetName()})
		f.create(t, ownedBy(vmi, p))
	}
}

func ownedBy[T client.Object](owner *unstructured.Unstructured, o T) T {
	o.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	return o
}

// podOf is a pod of a workload with the annotations of its template.
func podOf(t *testing.T, o *unstructured.Unstructured, name string, labels map[string]string) *corev1.Pod {
	t.Helper()
	annotations, _, err := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "annotations")
	if err != nil {
		t.Fatal(err)
	}
	return ownedBy(o, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: exampleNamespace, Name: name, Annotations: annotations, Labels: labels},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{nodesLabel: sharedNodes}, Containers: []corev1.Container{{Name: "c", Image: "c"}},
		},
	})
}

// keepsPromise says what is not as the comment of an example promises.
func (f *fixture) keepsPromise(t *testing.T, e example) error {
	t.Helper()
	var leases v1.BCSNetIPList
	if err := f.seen.List(t.Context(), &leases); err != nil {
		return err
	}
	var used []string
	last := e.objects[len(e.objects)-1]
	for _, l := range leases.Items {
		s := &l.Status
		mine := s.PodNamespace == exampleNamespace && strings.Contains("-"+s.PodName+"-", "-"+last.GetName()+"-") &&
			s.Claim == ""
		if e.claim.Name != "" {
			mine = s.Claim == e.claim.String()
		}
		if mine && s.Status == v1.IPActive {
			used = append(used, l.Name)
		}
	}
	slices.Sort(used)
	if len(used) != e.count || e.addresses != nil && !slices.Equal(used, e.addresses) {
		return fmt.Errorf("in use are %v, promised are %d %v", used, e.count, e.addresses)
	}
	if e.claim.Name == "" {
		return nil
	}
	var c v1.BCSNetIPClaim
	if err := f.seen.Get(t.Context(), e.claim, &c); err != nil {
		return err
	}
	if c.Spec.ReleasePolicy != e.policy || c.Status.Used != int64(e.count) {
		return errors.New("claim " + e.claim.String() + " says " + string(c.Spec.ReleasePolicy) + " " + c.Status.Usage)
	}
	return nil
}
