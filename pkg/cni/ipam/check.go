package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// checkPause is the time after which a CHECK confirms a difference: the answer may have come from a replica that lags
// behind the one that gave the address.
const checkPause = 500 * time.Millisecond

// check answers a CHECK: the allocator must still have the addresses of the interface, and they must equal those of
// prevResult.
func (p *Plugin) check(args *skel.CmdArgs) error {
	ctx, stop := context.WithTimeout(context.Background(), checkTime)
	defer stop()
	c, err := p.begin("CHECK", args)
	if err == nil {
		err = c.check(ctx)
	}
	return c.end(err)
}

func (c *call) check(ctx context.Context) error {
	if err := c.settings.Complete(); err != nil {
		return configError("the configuration", err)
	}
	have, err := c.previous()
	if err != nil {
		return err
	}
	difference := ""
	for range 2 {
		held, err := c.held(ctx)
		if unanswered, is := errors.AsType[*client.Unanswered](err); is {
			// This says nothing about the pod, whose address works. Some runtimes end a pod whose CHECK fails.
			c.line.Outcome = runstate.Unanswered
			c.note("the allocator was not asked: %v", unanswered)
			return nil
		}
		if err != nil {
			return err
		}
		if difference = differ(have, held); difference == "" {
			return nil
		}
		select {
		case <-time.After(checkPause):
		case <-ctx.Done():
		}
	}
	return cniError(codeRefused, "hint: delete the pod, so that it is created again", "%s of container %s: %s",
		c.line.IfName, c.line.ContainerID, difference)
}

// previous returns the addresses of the interface in prevResult.
func (c *call) previous() (have []netip.Addr, err error) {
	if c.conf.PrevResult == nil {
		return nil, cniError(types.ErrInvalidNetworkConfig, "", "a CHECK without prevResult")
	}
	parsed, err := create.Create(c.conf.CNIVersion, c.conf.PrevResult)
	if err != nil {
		return nil, cniError(types.ErrDecodingFailure, err.Error(), "prevResult cannot be read")
	}
	result, err := types100.NewResultFromResult(parsed)
	if err != nil {
		return nil, cniError(types.ErrDecodingFailure, err.Error(), "prevResult cannot be read")
	}
	for _, ip := range result.IPs {
		if i := ip.Interface; i != nil && *i >= 0 && *i < len(result.Interfaces) &&
			(result.Interfaces[*i].Name != c.line.IfName || result.Interfaces[*i].Sandbox == "") {
			continue
		}
		addr, ok := netip.AddrFromSlice(ip.Address.IP) //nolint:forbidigo // the library has it so
		if !ok {
			return nil, cniError(types.ErrDecodingFailure, "", "prevResult has an address that is not valid")
		}
		have = append(have, addr.Unmap())
	}
	if len(have) == 0 {
		return nil, cniError(types.ErrInvalidNetworkConfig, "", "prevResult has no address of %s", c.line.IfName)
	}
	slices.SortFunc(have, netip.Addr.Compare)
	return have, nil
}

// held returns the interface's addresses in the allocator.
func (c *call) held(ctx context.Context) (held []netip.Addr, err error) {
	err = c.client.Do(ctx, client.Call{
		Method: http.MethodGet, Path: wire.Prefix + "/container/" + c.line.ContainerID,
		Query: url.Values{"ifName": {c.line.IfName}}, RequestID: c.line.RequestID,
		Accept: func(data json.RawMessage) error {
			held = nil
			var list wire.LeaseList
			if err := json.Unmarshal(data, &list); err != nil {
				return err
			}
			for _, l := range list.Items {
				addr, err := netip.ParseAddr(l.IPAddr)
				second := l.Second != nil && l.Second.ContainerID == c.line.ContainerID
				if err != nil || l.ContainerID != c.line.ContainerID && !second {
					return fmt.Errorf("it is about %.80q of container %.80q", l.IPAddr, l.ContainerID)
				}
				held = append(held, addr)
			}
			return nil
		},
	})
	slices.SortFunc(held, netip.Addr.Compare)
	return held, err
}

// differ describes the difference between two sets of addresses; empty if they are equal.
func differ(have, held []netip.Addr) string {
	if slices.Equal(have, held) {
		return ""
	}
	if len(held) == 0 {
		return fmt.Sprintf("prevResult has %v, and the allocator knows no address", have)
	}
	return fmt.Sprintf("prevResult has %v, and the allocator knows %v", have, held)
}
