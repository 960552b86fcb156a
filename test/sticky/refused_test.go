package sticky_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// refusedParts are the cells of the table that are refused: nothing could free such an address, or get it back.
func (f *fixture) refusedParts() []part {
	const noReplicas, unstable = "has no replicas that could be scaled down, which is what would free an immutable address", "are not stable, so nothing could get the address back"
	job := func(a *app) client.Object {
		template := a.template()
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.name}, Spec: batchv1.JobSpec{Template: template},
		}
	}
	bare := func(a *app) client.Object {
		template := a.template()
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: a.namespace, Name: a.name, Labels: template.Labels, Annotations: template.Annotations,
		}, Spec: template.Spec}
	}
	generated := func(a *app) client.Object {
		p := bare(a).(*corev1.Pod)
		p.Name, p.GenerateName = "", a.name+"-"
		return p
	}
	var parts []part
	for _, c := range []struct {
		name, policy string
		make         func(a *app) client.Object
		says         string
	}{
		{"job-immutable", immutable, job, "Job %s/app " + noReplicas},
		{"job-never", never, job, "the names of the pods of Job %s/app " + unstable},
		{"ds-immutable", immutable, nil, "DaemonSet %s/app " + noReplicas},
		{"ds-never", never, nil, "the names of the pods of DaemonSet %s/app " + unstable},
		{"pod-immutable", immutable, bare, "Pod %s/app " + noReplicas},
		{"pod-generated-never", never, generated, ": the name of Pod %s/app-"},
	} {
		parts = append(parts, part{"refused-" + c.name, func(t *testing.T) {
			t.Helper()
			s := f.newSite(t, "refused-"+c.name, 8, sharedNodes)
			a := s.newApp(daemonSet, asks(c.policy, daemonSet, s.namespace), 1)
			if c.make == nil {
				a.apply(t)
			} else {
				f.create(t, c.make(a))
			}
			eventually(t, "the refusal", func() error { return a.isRefused(t, c.policy, fmt.Sprintf(c.says, s.namespace)) })
		}})
	}
	return parts
}

// isRefused says whether the pods of the app were refused in these words, and have nothing.
func (a *app) isRefused(t *testing.T, policy, says string) error {
	t.Helper()
	pods, err := a.pods(t.Context())
	switch {
	case err != nil:
		return err
	case len(pods) == 0:
		return fmt.Errorf("there is no pod")
	}
	why, ok := a.kubelet.lastRefusal(pods[0].Namespace, pods[0].Name)
	if !ok || why.reason != string(ipam.ReasonInvalidAnnotation) || !strings.Contains(why.message, says) ||
		!strings.Contains(why.message, fmt.Sprintf("annotation %s=%q of Pod", galaxyPolicy, policy)) {
		return fmt.Errorf("pod %s was refused with %q: %q", pods[0].Name, why.reason, why.message)
	}
	p, err := a.look(t, len(pods))
	if len(p.held) > 0 {
		t.Errorf("held: %s", list(p.held))
	}
	if err == nil {
		return fmt.Errorf("the pods run")
	}
	return nil
}

// claimRefused: a policy of admission refuses the claim that annotations ask for. The pods are told, and the claim is
// made once the policy is gone.
func (f *fixture) claimRefused(t *testing.T) {
	t.Helper()
	s := f.newSite(t, "refused-claim", 8, sharedNodes)
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule: admissionv1.Rule{
				APIGroups: []string{v1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"bcsnetipclaims"},
			},
		}}},
	}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: "false", Message: "no claims here"}}
	f.create(t, policy)
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = policy.Name, []admissionv1.ValidationAction{admissionv1.Deny}
	f.create(t, binding)
	t.Cleanup(func() { _ = f.admin.Delete(context.Background(), binding) })
	eventually(t, "the policy of admission", func() error {
		c := &v1.BCSNetIPClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "tried"}}
		c.Spec.ReleasePolicy = v1.ReleaseNever
		if err := f.admin.Create(t.Context(), c, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Errorf("a claim is answered with %w", err)
		}
		return nil
	})
	a := s.newApp(deployment, asks(immutable, deployment, s.namespace), 1)
	a.apply(t)
	eventually(t, "the event of the pod", func() error {
		var events eventsv1.EventList
		if err := f.admin.List(t.Context(), &events, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == v1.ReasonClaimNotMade && e.Regarding.Kind == "Pod" && strings.Contains(e.Note, "no claims here") {
				return nil
			}
		}
		return fmt.Errorf("there is none among %d", len(events.Items))
	})
	if err := f.admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim", func() error { return f.admin.Get(t.Context(), a.claimName(), &v1.BCSNetIPClaim{}) })
}
