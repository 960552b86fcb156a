package attacks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// nodes are attacks by who has taken a node over, with all that lies on it.
func nodes() []attack {
	return []attack{
		{"another_nodes_host", anotherHost}, {"another_nodes_pod", anotherPod},
		{"another_nodes_container", anotherContainer}, {"release_of_another_host", releaseOfAnotherHost},
		{"hosts_by_other_spellings", spellings}, {"lists_of_others", listsOfOthers},
		{"annotation_on_the_own_node", ownAnnotation}, {"node_that_is_not_there", noNode},
	}
}

func anotherHost(t *testing.T, w *world) {
	for name, a := range map[string]ask{
		"ADD": {method: "POST", path: prefix, body: w.add("web-theirs", theirs)},
		"DEL": {method: "DELETE", path: prefix, body: w.victim},
		"GC":  {method: "POST", path: prefix + "/gc", body: gcOf(theirs)},
	} {
		a.token = w.node
		w.send(t, a).refused(t, name, ipam.ReasonNotPermitted)
	}
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: w.add("web-mine", mine)}).done(t, "the own pod")
}

func anotherPod(t *testing.T, w *world) {
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: w.add("web-theirs", mine)}).
		refused(t, "a pod of another node", ipam.ReasonNotPermitted)
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: with(w.add("web-mine", mine), "containerID",
		w.victim["containerID"])}).refused(t, "a container of another node", ipam.ReasonContainerHoldsOther)
	w.send(t, ask{token: w.node, method: "POST", path: prefix, body: object{"host": mine, "owner": "vm"}}).
		refused(t, "an owner, which is on no node", ipam.ReasonNotPermitted)
}

// The calls are well-formed and allowed by the role: they find nothing of the node's.
func anotherContainer(t *testing.T, w *world) {
	h := w.send(t, ask{token: w.node, method: "DELETE", path: prefix, body: with(w.victim, "host", mine)})
	if data := h.done(t, "DEL"); len(data["ips"].([]any)) > 0 {
		t.Errorf("DEL released %v", data["ips"])
	}
	for _, name := range []string{"release", "conflict"} {
		a := w.calls()[name]
		a.token = w.node
		w.send(t, a).refused(t, name, ipam.ReasonAddressNotHeld)
	}
}

func releaseOfAnotherHost(t *testing.T, w *world) {
	for name, token := range map[string]string{"the plugin": w.node, "an operator's pod on the node": w.operatorOnNode} {
		w.send(t, ask{token: token, method: "DELETE", path: prefix + "/host/" + theirs}).
			refused(t, name, ipam.ReasonNotPermitted)
	}
}

// Who may ask, and what is done, are decided by two readers of one request: none makes them read different hosts.
func spellings(t *testing.T, w *world) {
	rest := fmt.Sprintf(`"containerID":%q,"podName":"web-theirs","podNamespace":%q}`, w.victim["containerID"], shop)
	for name, host := range map[string]string{
		"twice": `{"host":"` + mine + `","host":"` + theirs + `",`, "the other case": `{"host":"` + mine + `","HOST":"` + theirs + `",`,
		"the other case before": `{"Host":"` + theirs + `","host":"` + mine + `","hOsT":"` + theirs + `",`,
		"escaped":               `{"host":"` + mine + `","\u0068ost":"` + theirs + `",`,
		"folded":                `{"host":"` + mine + `","hoſt":"` + theirs + `",`,
		"mapped":                `{"host":"::ffff:` + theirs + `",`, "with a zone": `{"host":"` + theirs + `%eth0",`,
		"with leading zeros": `{"host":"010.077.000.012",`, "with blanks": `{"host":" ` + theirs + ` ",`,
		"a number": `{"host":172818444,`, "a list": `{"host":["` + mine + `","` + theirs + `"],`,
		"a part": `{"host":"10.77.12",`, "two": `{"host":"` + mine + `,` + theirs + `",`,
		"a port": `{"host":"` + theirs + `:0",`, "null": `{"host":null,`, "none": `{`,
	} {
		for _, method := range []string{"POST", "DELETE"} {
			h := w.send(t, ask{token: w.node, method: method, path: prefix, body: host + rest})
			h.refused(t, name+" by "+method, ipam.ReasonNotPermitted, ipam.ReasonBadRequest)
		}
	}
}

func listsOfOthers(t *testing.T, w *world) {
	for _, name := range []string{"list", "container", "pod", "pool"} {
		a := w.calls()[name]
		a.token = w.node
		if h := w.send(t, a); strings.Contains(h.text, "web-theirs") || h.Code != 0 {
			t.Errorf("%s shows %.300s", name, h.text)
		}
	}
	for _, name := range []string{
		"host", "address", "galaxy's list", "galaxy's release", "galaxy's pool", "pool deletion", "pool setting",
	} {
		a := w.calls()[name]
		a.token = w.node
		w.send(t, a).refused(t, name, ipam.ReasonNotPermitted)
	}
}

// A kubelet writes its own Node: the annotation that gives it hosts it may not. Where no policy refuses that, it gets
// by it neither what is another node's own nor what an operator gave another node.
func ownAnnotation(t *testing.T, w *world) {
	cfg, err := shared.cluster.NodeConfig(nodeMine)
	if err != nil {
		t.Fatal(err)
	}
	kubelet, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// further is nobody's, and given the victim's by an operator.
	const further, given = "10.77.0.99", "10.77.0.98"
	annotate := func(c client.Client, node, value string) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, hosts.Annotation, value)
		return c.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
			client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	byOperator := func(node, value string) {
		t.Helper()
		if err := annotate(shared.admin, node, value); err != nil {
			t.Fatal(err)
		}
	}
	asksFor := func(token, host string) {
		t.Helper()
		controlplane.Eventually(t, func() error { // the controller has seen it
			h, err := w.trySend(t.Context(), ask{token: token, method: "GET", path: prefix + "/host/" + host})
			if err == nil && h.Code != 0 {
				err = errors.New(h.text)
			}
			return err
		})
	}
	byOperator(nodeTheirs, given)
	defer byOperator(nodeTheirs, "")
	asksFor(w.theirNode, given)
	if err := annotate(kubelet, nodeMine, given); !apierrors.IsForbidden(err) {
		t.Errorf("the policy: %v", err)
	}
	byOperator(nodeMine, theirs+","+given+","+further) // as without the policy
	defer byOperator(nodeMine, "")
	asksFor(w.node, further)
	w.send(t, ask{token: w.node, method: "DELETE", path: prefix, body: w.victim}).
		refused(t, "another node's own address", ipam.ReasonNotPermitted)
	for name, a := range map[string]ask{
		"list": {method: "GET", path: prefix + "/host/" + given}, "release": {method: "DELETE", path: prefix + "/host/" + given},
		"DEL": {method: "DELETE", path: prefix, body: with(w.victim, "host", given)},
		"GC":  {method: "POST", path: prefix + "/gc", body: gcOf(given)},
	} {
		a.token = w.node
		w.send(t, a).refused(t, "what another node was given: "+name, ipam.ReasonNotPermitted)
	}
}

// A pod whose node has no Node, or one without addresses, acts for no host rather than for all.
func noNode(t *testing.T, w *world) {
	w.pod(t, shop, "plugin-nowhere", "node-nowhere", "plugin")
	w.create(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-bare"}})
	w.pod(t, shop, "plugin-bare", "node-bare", "plugin")
	w.pod(t, shop, "plugin-unplaced", "", "plugin")
	for _, pod := range []string{"plugin-nowhere", "plugin-bare", "plugin-unplaced"} {
		token := w.token(t, "plugin", pod)
		for _, name := range []string{"ADD", "DEL", "GC", "host"} {
			a := w.calls()[name]
			a.token = token
			w.send(t, a).refused(t, pod+": "+name, ipam.ReasonNotPermitted)
		}
		if h := w.send(t, list(token)); strings.Contains(h.text, "web-theirs") {
			t.Errorf("%s: the list shows %.300s", pod, h.text)
		}
	}
}
