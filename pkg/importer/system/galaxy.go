package system

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/bcsnet/bcsnet/pkg/compat/galaxy/config"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// galaxy takes over from galaxy-ipam.
func galaxy() System {
	return System{
		Name: "galaxy", Aliases: []string{"galaxy-ipam"}, Title: "galaxy-ipam",
		About: `It reads the ConfigMap kube-system/floatingip-config, whose entries become
pools, and the objects FloatingIP of the group galaxy.k8s.io/v1alpha1. An
address whose release policy is immutable or never and whose pod does not run
is reserved for its app, and the reason names the app. If you keep the
ConfigMap as the source of pools (--floatingip-config), let the controller
make them before you import.`,
		Example: `  bcsnetctl import galaxy --dry-run=client
  bcsnetctl import galaxy --yes`,
		Read: readGalaxy,
	}
}

// floatingIP is a FloatingIP; its name is the address.
type floatingIP struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		// Key names the pod: APP-KIND_NAMESPACE_APP_POD, after pool__POOL_ if the address is of a shared pool. The pod
		// is empty while the address is kept for the app.
		Key string `json:"key"`
		// Attribute is JSON with the pod's UID.
		Attribute  string `json:"attribute"`
		Policy     uint16 `json:"policy"`
		UpdateTime string `json:"updateTime"`
	} `json:"spec"`
}

func readGalaxy(ctx context.Context, from Source) (importer.Rows, error) {
	r := rows{importer.Rows{System: "galaxy"}}
	data, found, err := from.configMap(ctx, "floatingip-config")
	if err != nil {
		return r.Rows, err
	}
	if found {
		r.galaxyPools(data[config.Key])
	}
	in := &reading{ctx: ctx, from: from, of: schema.GroupVersion{Group: "galaxy.k8s.io", Version: "v1alpha1"}}
	forEach(in, "floatingips", !found, r.floatingIP)
	return r.Rows, in.err
}

// galaxyPools adds the pools of the ConfigMap's document, under the names that the controller gives them.
func (r *rows) galaxyPools(document string) {
	entries, err := config.Parse([]byte(document))
	if err != nil {
		r.conflict("ConfigMap kube-system/floatingip-config", "%v", err)
		return
	}
	for _, w := range config.Make(entries, nil, nil).Wanted {
		o := importer.Pool(w.Name)
		w.Entry.Set(&o.Spec)
		r.Pools = append(r.Pools, o)
	}
}

// floatingIP adds the address of an object.
func (r *rows) floatingIP(o *floatingIP) {
	row := importer.Address{Object: object("FloatingIP", o)}
	row.Updated, _ = time.Parse(time.RFC3339Nano, o.Spec.UpdateTime) // zero if it has none
	key, pool := o.Spec.Key, ""
	if rest, ok := strings.CutPrefix(key, "pool__"); ok {
		pool, key, _ = strings.Cut(rest, "_")
	}
	parts := strings.Split(key, "_")
	kinds := map[string]string{"dp": "Deployment", "sts": "StatefulSet", "tapp": "TApp"}
	policy := map[uint16]string{1: "immutable", 2: "never"}[o.Spec.Policy]
	switch {
	case pool != "" && key == "":
		row.State, row.Reason = importer.Kept, "kept for the shared pool "+pool
	case o.Spec.Key == "":
		row.State, row.Reason = importer.Kept, "reserved there"
	case len(parts) != 4:
		row.State, row.Reason = importer.Unclear, fmt.Sprintf("its key %q names no pod", o.Spec.Key)
	default:
		row.State = importer.Held
		row.Holder = lease.Holder{IfName: lease.DefaultIfName, Namespace: parts[1], PodName: parts[3]}
		var attribute struct {
			UID string `json:"uid"`
		}
		if json.Unmarshal([]byte(o.Spec.Attribute), &attribute) == nil {
			row.Holder.PodUID = attribute.UID
		}
		if pool != "" {
			policy = "shared pool " + pool
		}
		if policy != "" {
			kind := cmp.Or(kinds[parts[0]], parts[0])
			row.Reason = fmt.Sprintf("kept for %s %s/%s (%s)", kind, parts[1], parts[2], policy)
		}
		if parts[3] == "" {
			row.State, row.Holder = importer.Kept, lease.Holder{}
			row.Reason = cmp.Or(row.Reason, "kept for "+parts[1]+"/"+parts[2])
		}
	}
	r.add(o.Name, row)
}
