package httpapi

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Bounds of a question. They are checked before the question is parsed: three bytes can become a thousand in memory.
const (
	// maxPod bounds the Pod, in bytes; the API server accepts no longer one.
	maxPod = 3 << 20
	// maxPodParts bounds the parts of a Pod, in lists and objects of all depths.
	maxPodParts = 40_000
	// maxAsked bounds the nodes in a question.
	maxAsked = 50_000
)

// question is ExtenderArgs with the nodes unparsed: of 5,000 whole nodes, only the names are read.
type question struct {
	pod   *corev1.Pod
	nodes []span // none if the question has only names
	names []string
}

// span is a part of a body. It is not copied, so the body must not change.
type span []byte

// UnmarshalJSON keeps a part unparsed.
func (s *span) UnmarshalJSON(b []byte) error {
	*s = b
	return nil
}

func (s span) missing() bool { return s == nil || string(s) == "null" }

// askedPod has the fields that decide about the addresses of a pod.
type askedPod struct {
	Metadata struct {
		Name              string                  `json:"name"`
		GenerateName      string                  `json:"generateName"`
		Namespace         string                  `json:"namespace"`
		UID               string                  `json:"uid"`
		ResourceVersion   string                  `json:"resourceVersion"`
		CreationTimestamp metav1.Time             `json:"creationTimestamp"`
		DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
		DeletionGrace     *int64                  `json:"deletionGracePeriodSeconds"`
		Labels            map[string]string       `json:"labels"`
		Annotations       map[string]string       `json:"annotations"`
		OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName       string           `json:"nodeName"`
		HostNetwork    bool             `json:"hostNetwork"`
		Containers     []askedContainer `json:"containers"`
		InitContainers []askedContainer `json:"initContainers"`
		Resources      *askedResources  `json:"resources"`
	} `json:"spec"`
	Status struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

type askedContainer struct {
	Resources askedResources `json:"resources"`
}

type askedResources struct {
	Requests corev1.ResourceList `json:"requests"`
	Limits   corev1.ResourceList `json:"limits"`
}

func readQuestion(body []byte) (*question, error) {
	var parts struct{ Pod, Nodes, NodeNames span }
	if err := unmarshal("", body, &parts); err != nil {
		return nil, err
	}
	if parts.Pod.missing() {
		return nil, ipam.Refuse(ipam.ReasonMissingField, "the question names no Pod")
	}
	pod, err := readPod(parts.Pod)
	if err != nil {
		return nil, err
	}
	switch {
	case parts.Nodes.missing() && parts.NodeNames.missing():
		return nil, ipam.Refuse(ipam.ReasonMissingField, "the question has neither Nodes nor NodeNames")
	case !parts.Nodes.missing() && !parts.NodeNames.missing():
		return nil, ipam.Refuse(ipam.ReasonBadRequest, "the question has both Nodes and NodeNames")
	}
	q := &question{pod: pod}
	if !parts.NodeNames.missing() {
		if n := commas(parts.NodeNames, 1); n >= maxAsked {
			return nil, ipam.Refuse(ipam.ReasonBadRequest, "NodeNames has %d names, more than %d", n+1, maxAsked)
		}
		return q, unmarshal("NodeNames", parts.NodeNames, &q.names)
	}
	return q, q.readNodes(parts.Nodes)
}

func readPod(text span) (*corev1.Pod, error) {
	if len(text) > maxPod {
		return nil, ipam.Refuse(ipam.ReasonBadRequest, "Pod is longer than %d bytes", maxPod)
	}
	if n := commas(text, anyDepth); n > maxPodParts {
		return nil, ipam.Refuse(ipam.ReasonBadRequest, "Pod has %d parts, more than %d", n, maxPodParts)
	}
	var in askedPod
	if err := unmarshal("Pod", text, &in); err != nil {
		return nil, err
	}
	m := in.Metadata
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: m.Name, GenerateName: m.GenerateName, Namespace: m.Namespace, UID: types.UID(m.UID),
		ResourceVersion:   m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		DeletionGracePeriodSeconds: m.DeletionGrace,
		Labels:                     m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences,
	}}
	p.Spec.NodeName, p.Spec.HostNetwork, p.Status.Phase = in.Spec.NodeName, in.Spec.HostNetwork, in.Status.Phase
	p.Spec.Containers, p.Spec.InitContainers = requesting(in.Spec.Containers), requesting(in.Spec.InitContainers)
	if r := in.Spec.Resources; r != nil {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: r.Requests, Limits: r.Limits}
	}
	return p, nil
}

// requesting returns the containers with resource requests; the others do not matter.
func requesting(in []askedContainer) (out []corev1.Container) {
	for _, c := range in {
		if len(c.Resources.Requests)+len(c.Resources.Limits) > 0 {
			out = append(out, corev1.Container{Resources: corev1.ResourceRequirements{
				Requests: c.Resources.Requests, Limits: c.Resources.Limits,
			}})
		}
	}
	return out
}

func (q *question) readNodes(text span) error {
	if n := commas(text, 2); n >= maxAsked {
		return ipam.Refuse(ipam.ReasonBadRequest, "Nodes has %d items, more than %d", n+1, maxAsked)
	}
	var list struct {
		Items []span `json:"items"`
	}
	if err := unmarshal("Nodes", text, &list); err != nil {
		return err
	}
	q.nodes, q.names = list.Items, make([]string, 0, len(list.Items))
	if q.nodes == nil {
		q.nodes = []span{}
	}
	for i, item := range q.nodes {
		var node struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := unmarshal("", item, &node); err != nil {
			return ipam.Refuse(ipam.ReasonBadRequest, "Nodes.items[%d] is not a node: %v", i, err)
		}
		q.names = append(q.names, node.Metadata.Name)
	}
	return nil
}

// anyDepth makes commas count at all depths.
const anyDepth = 0

// commas returns the number of commas in a JSON text, outside its strings, at one depth: 1 is inside the outermost list
// or object.
func commas(text []byte, at int) (n int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',' && (at == anyDepth || at == depth):
			n++
		}
	}
	return n
}

// short returns the question with node names only, for another replica.
func (q *question) short() []byte {
	return marshal(extenderv1.ExtenderArgs{Pod: q.pod, NodeNames: &q.names})
}
