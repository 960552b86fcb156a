package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// ask sends one request of the call.
func (c *call) ask(ctx context.Context, method, path string, body any, accept func(json.RawMessage) error) error {
	return c.client.Do(ctx, client.Call{
		Method: method, Path: wire.Prefix + path, Body: body, RequestID: c.line.RequestID, Accept: accept,
	})
}

// allocate requests the addresses of the interface.
func (c *call) allocate(ctx context.Context) (*allocation, error) {
	request := wire.AllocateRequest{
		Host: c.settings.Host.String(), ContainerID: c.line.ContainerID, IfName: c.line.IfName,
		PodName: c.conf.Pod.Name, PodNamespace: c.conf.Pod.Namespace, PodUID: c.conf.Pod.UID,
		IPAddr: c.conf.Wish.IPAddr(), Network: c.conf.Network, IPFamilyPolicy: c.conf.FamilyPolicy,
		IPFamilies: c.conf.Families, StartedAt: c.startedAt(), CNINetwork: c.cniNetwork(),
	}
	var got *allocation
	err := c.ask(ctx, http.MethodPost, "", request, func(data json.RawMessage) (err error) {
		got, err = decodeAllocation(data, request, c.conf.Wish.Addrs)
		return err
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// cniNetwork returns the network name by which a GC finds the lease; empty if GC is disabled. The plugin that answers a
// GC may be another one, which does not see this plugin's configuration.
func (c *call) cniNetwork() string {
	if c.conf.DisableGC {
		return ""
	}
	return c.conf.Name
}

// acceptRelease returns a function that parses the answer to a DEL of a container, and records the freed addresses.
func (c *call) acceptRelease(id string) func(json.RawMessage) error {
	return func(data json.RawMessage) error {
		var r wire.Release
		if err := json.Unmarshal(data, &r); err != nil {
			return err
		}
		if r.ContainerID != id {
			return errors.New("it is about another container")
		}
		for _, ip := range r.IPs {
			if _, err := netip.ParseAddr(ip); err != nil {
				return errors.New("it names a value that is not an address")
			}
		}
		if id == c.line.ContainerID {
			c.line.Addrs = r.IPs
		}
		return nil
	}
}
