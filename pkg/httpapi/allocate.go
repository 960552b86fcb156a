package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

func (s *Service) allocate(r *http.Request, body []byte) (any, string, error) {
	var in AllocateRequest
	if err := s.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	request, gateway, err := in.parse()
	if err != nil {
		return nil, "", err
	}
	addresses, err := s.Allocator.Allocate(r.Context(), request)
	if err != nil {
		return nil, "", err
	}
	out := Allocation{
		Host: request.Host.String(), ContainerID: in.ContainerID, PodName: in.PodName, PodNamespace: in.PodNamespace,
		Owner: in.Owner, IfName: addresses[0].IfName,
	}
	for _, a := range addresses {
		out.IPs = append(out.IPs, wireAddress(a, s.gateway(a, request.Host, gateway)))
	}
	out.Address = out.IPs[0]
	return out, "", nil
}

// parse checks the fields in the order in which the released allocator does.
func (in AllocateRequest) parse() (r allocator.Request, gateway netip.Addr, err error) {
	if in.Host == "" || in.ContainerID == "" && in.Owner == "" {
		return r, gateway, ipam.Refuse(ipam.ReasonMissingField, "lost Host/ContainerID info in request")
	}
	if (in.PodName == "" || in.PodNamespace == "") && in.Owner == "" {
		return r, gateway, ipam.Refuse(ipam.ReasonMissingField, "lost PodNamespace/PodName info in request")
	}
	if in.Owner != "" && (in.PodName != "" || in.PodNamespace != "") {
		return r, gateway, ipam.Refuse(ipam.ReasonBadRequest, "owner stands in place of podName and podNamespace: give one or the other")
	}
	if err := errors.Join(
		bounded("containerID", in.ContainerID, maxContainerID), bounded("ifName", in.IfName, maxIfName),
		bounded("podName", in.PodName, maxName), bounded("podNamespace", in.PodNamespace, maxNamespace),
		bounded("podUID", in.PodUID, maxUID), bounded("owner", in.Owner, maxName), bounded("network", in.Network, maxName),
	); err != nil {
		return r, gateway, err
	}
	r = allocator.Request{
		ContainerID: in.ContainerID, IfName: in.IfName, Namespace: in.PodNamespace, PodName: in.PodName,
		PodUID: in.PodUID, Owner: in.Owner, Network: in.Network,
	}
	if r.Host, err = parseHost(in.Host); err != nil {
		return r, gateway, err
	}
	if r.Addrs, err = parseAddresses(in.IPAddr); err != nil {
		return r, gateway, err
	}
	if r.StartedAt, err = parseStarted(in.StartedAt); err != nil {
		return r, gateway, err
	}
	if in.HostGateway != "" {
		if gateway, err = ipam.ParseAddr(in.HostGateway); err != nil {
			return r, gateway, ipam.Refuse(ipam.ReasonBadAddress, "hostGateway: %v", err)
		}
	}
	return r, gateway, nil
}

// gateway is what the answer names: the pool's, or, where the service is configured so and the address
// lies in the subnet, the one of the request or of the node.
func (s *Service) gateway(a allocator.Address, host, asked netip.Addr) string {
	subnet := netip.PrefixFrom(a.Addr, a.Bits)
	if s.Gateway == GatewayHost {
		for _, g := range []netip.Addr{asked, s.NodeGateway(host)} {
			if g.IsValid() && subnet.Contains(g) && g != a.Addr {
				return g.String()
			}
		}
	}
	if !a.Lease.Gateway.IsValid() {
		return ""
	}
	return a.Lease.Gateway.String()
}

func (s *Service) release(r *http.Request, body []byte) (any, string, error) {
	var in ReleaseRequest
	if err := s.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	request, err := in.parse()
	if err != nil {
		return nil, "", err
	}
	released, err := s.Allocator.Release(r.Context(), request)
	if err != nil {
		return nil, "", err
	}
	out := Release{
		Host: in.Host, ContainerID: in.ContainerID, PodName: in.PodName, PodNamespace: in.PodNamespace, Owner: in.Owner,
		IPs: names(released),
	}
	if len(released) > 0 {
		return out, "", nil
	}
	if in.Owner != "" {
		return out, fmt.Sprintf("didn't find related BCSNetIP instance for owner %s", in.Owner), nil
	}
	return out, fmt.Sprintf("didn't find related BCSNetIP instance for container %s", in.ContainerID), nil
}

func (in ReleaseRequest) parse() (r allocator.ReleaseRequest, err error) {
	if in.Host == "" || in.ContainerID == "" && in.Owner == "" {
		return r, ipam.Refuse(ipam.ReasonMissingField, "lost Host/ContainerID info in request")
	}
	if (in.PodName == "" || in.PodNamespace == "") && in.Owner == "" {
		return r, ipam.Refuse(ipam.ReasonMissingField, "lost PodNamespace/PodName info in request")
	}
	if err := errors.Join(
		bounded("containerID", in.ContainerID, maxContainerID), bounded("ifName", in.IfName, maxIfName),
		bounded("podUID", in.PodUID, maxUID), bounded("owner", in.Owner, maxName),
	); err != nil {
		return r, err
	}
	if _, err := parseHost(in.Host); err != nil {
		return r, err
	}
	started, err := parseStarted(in.StartedAt)
	return allocator.ReleaseRequest{
		ContainerID: in.ContainerID, IfName: in.IfName, PodUID: in.PodUID, Owner: in.Owner, Network: in.Network, StartedAt: started,
	}, err
}

func (s *Service) releaseHost(r *http.Request, _ []byte) (any, string, error) {
	host, err := parseHost(r.PathValue("host"))
	if err != nil {
		return nil, "", err
	}
	released, err := allocator.ReleaseHost(r.Context(), s.Leases, host)
	if err != nil {
		return nil, "", err
	}
	if len(released) == 0 {
		return names(released), fmt.Sprintf("host %s holds no address", host), nil
	}
	s.Log.Info("host released", "host", host.String(), "addresses", len(released), "request_id", idOf(r))
	return names(released), "", nil
}

func (s *Service) releaseAddress(r *http.Request, body []byte) (any, string, error) {
	addr, err := parseAddress(r.PathValue("address"))
	if err != nil {
		return nil, "", err
	}
	var in ReleaseAddressRequest
	if err := s.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	if (in.ContainerID == "") == (in.Owner == "") {
		return nil, "", ipam.Refuse(ipam.ReasonMissingField, "give containerID or owner: who holds the address")
	}
	l, released, err := s.Allocator.ReleaseAddress(r.Context(), addr, in.ContainerID, in.Owner)
	if err != nil {
		return nil, "", err
	}
	if !released {
		return Release{IPs: []string{}}, fmt.Sprintf("address %s is not in use", addr), nil
	}
	return Release{ContainerID: in.ContainerID, Owner: in.Owner, PodName: l.PodName, PodNamespace: l.Namespace, IPs: []string{addr.String()}}, "", nil
}

func names(ls []ipam.Lease) []string {
	out := make([]string, 0, len(ls))
	for _, l := range ls {
		out = append(out, l.Addr.String())
	}
	return out
}
