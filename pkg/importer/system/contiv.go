package system

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// contiv takes over from Contiv.
func contiv() System {
	return System{
		Name: "contiv", Title: "Contiv", Files: true,
		About: `It reads Contiv's state as JSON: what is stored below /contiv.io/state/nets and
/contiv.io/state/eps, one object or list after the other. Each network becomes
a pool, an IPv6 subnet one more. Groups are not read: carve them from the pool
with bcsnetctl pool create --parent. The pod of an endpoint is its label
io.kubernetes.pod.name, else the one that reports the address.`,
		Example: `  etcdctl get --prefix --print-value-only /contiv.io/state/nets/ > state.json
  etcdctl get --prefix --print-value-only /contiv.io/state/eps/ >> state.json
  bcsnetctl import contiv --file state.json --dry-run=client`,
		Read: readContiv,
	}
}

// contivState is a network or an endpoint: networks have a SubnetIP.
type contivState struct {
	ID          string            `json:"id"`
	NetworkName string            `json:"networkName"`
	Tenant      string            `json:"tenant"`
	PktTagType  string            `json:"pktTagType"`
	PktTag      int32             `json:"pktTag"`
	SubnetIP    string            `json:"subnetIP"`
	SubnetLen   int               `json:"subnetLen"`
	Gateway     string            `json:"gateway"`
	IPv6Subnet  string            `json:"ipv6SubnetIP"`
	IPv6Len     int               `json:"ipv6SubnetLen"`
	IPv6Gateway string            `json:"ipv6Gateway"`
	IPAddress   string            `json:"ipAddress"`
	IPv6Address string            `json:"ipv6Address"`
	ContainerID string            `json:"containerId"`
	EndpointID  string            `json:"endpointID"`
	Labels      map[string]string `json:"labels"`
}

func readContiv(_ context.Context, from Source) (importer.Rows, error) {
	r := rows{importer.Rows{System: "contiv"}}
	for _, path := range from.Files {
		if err := r.contivFile(path); err != nil {
			return r.Rows, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r.Rows, nil
}

// contivFile adds the objects of a file.
func (r *rows) contivFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for d := json.NewDecoder(f); ; {
		var value json.RawMessage
		if err := d.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
		}
		var all []contivState
		if value[0] != '[' {
			value = append(append(json.RawMessage("["), value...), ']')
		}
		if err := json.Unmarshal(value, &all); err != nil {
			return fmt.Errorf("before byte %d: %w", d.InputOffset(), err)
		}
		for _, o := range all {
			r.contiv(o)
		}
	}
}

func (r *rows) contiv(o contivState) {
	if o.SubnetIP != "" || o.IPv6Subnet != "" {
		r.contivPool(o, "", o.SubnetIP, o.SubnetLen, o.Gateway)
		r.contivPool(o, "-v6", o.IPv6Subnet, o.IPv6Len, o.IPv6Gateway)
		return
	}
	name := "endpoint " + o.ID
	row := importer.Address{Object: name, State: importer.Held, Holder: lease.Holder{
		ContainerID: cmp.Or(o.ContainerID, o.EndpointID), IfName: lease.DefaultIfName,
		Namespace: o.Labels["io.kubernetes.pod.namespace"], PodName: o.Labels["io.kubernetes.pod.name"],
	}}
	if row.Holder.PodName == "" && row.Holder.ContainerID == "" {
		row.State, row.Reason = importer.Kept, name
	}
	for _, text := range []string{o.IPAddress, o.IPv6Address} {
		if text != "" {
			r.add(text, row)
		}
	}
	if o.IPAddress == "" && o.IPv6Address == "" {
		r.left("object "+o.ID, "it is neither a network nor an endpoint with an address")
	}
}

// contivPool adds the pool of a network's subnet, if it has that.
func (r *rows) contivPool(o contivState, suffix, subnet string, bits int, gateway string) {
	if subnet == "" {
		return
	}
	name := "network " + cmp.Or(o.ID, o.NetworkName)
	at, ok := r.subnet(name, "subnet", fmt.Sprintf("%s/%d", subnet, bits))
	if !ok {
		return
	}
	network := poolName(o.NetworkName)
	if o.Tenant != "" && o.Tenant != "default" {
		network = poolName(o.Tenant + "-" + o.NetworkName)
		r.left(name, "tenant %s: bind its namespaces: bcsnetctl pool bind %s --namespace NAMESPACE", o.Tenant,
			network+suffix)
	}
	p := poolOf(network+suffix, at)
	p.Spec.Network = network
	if a, err := netip.ParseAddr(gateway); err == nil && ipaddr.Reaches(at, a) {
		p.Spec.Gateway = a.String()
	}
	if strings.EqualFold(o.PktTagType, "vlan") {
		p.Spec.VLAN = o.PktTag
	}
	r.Pools = append(r.Pools, p)
}
