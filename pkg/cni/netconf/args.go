package netconf

import (
	"strings"

	"github.com/containernetworking/cni/pkg/types"
)

// Pod identifies the container's pod by the runtime's CNI_ARGS. Fields that the runtime does not send are empty.
type Pod struct{ Namespace, Name, UID string }

// Known reports whether the runtime named a pod.
func (p Pod) Known() bool { return p.Namespace != "" && p.Name != "" }

// String returns namespace and name; empty if the runtime named no pod.
func (p Pod) String() string {
	if !p.Known() {
		return ""
	}
	return p.Namespace + "/" + p.Name
}

// args are the variables of CNI_ARGS, with the names that Kubernetes' runtimes and the CNI conventions use.
//
//nolint:staticcheck // the library finds variables by the names of fields
type args struct {
	types.CommonArgs
	IP                         types.UnmarshallableString
	MAC                        types.UnmarshallableString
	K8S_POD_NAMESPACE          types.UnmarshallableString
	K8S_POD_NAME               types.UnmarshallableString
	K8S_POD_UID                types.UnmarshallableString
	K8S_POD_INFRA_CONTAINER_ID types.UnmarshallableString
}

// argsWish has the pod's requests in CNI_ARGS.
type argsWish struct {
	ips []string
	mac string
}

// parseArgs parses CNI_ARGS. Unknown variables are errors unless IgnoreUnknown is set, as in CNI.
func parseArgs(text string, p *problems) (pod Pod, w argsWish) {
	var a args
	if err := types.LoadArgs(text, &a); err != nil {
		p.add(FieldArgs, "%q cannot be read: %v", clip(text), err)
	}
	pod = Pod{Namespace: string(a.K8S_POD_NAMESPACE), Name: string(a.K8S_POD_NAME), UID: string(a.K8S_POD_UID)}
	if a.IP != "" {
		w.ips = strings.Split(string(a.IP), ",")
	}
	w.mac = string(a.MAC)
	return pod, w
}
