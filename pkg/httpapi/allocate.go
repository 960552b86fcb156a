package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

func (s *Service) allocate(r *http.Request, body []byte) (any, string, error) {
	var in wire.AllocateRequest
	if err := s.bodies.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	addHolderAttrs(r.Context(), in.Host, in.ContainerID, in.PodNamespace, in.PodName, in.Owner)
	request, err := parseAllocate(in)
	if err == nil {
		err = s.fitLengths(in.IPAddr)
	}
	if err != nil {
		return nil, "", err
	}
	request.ArrivedAt, request.OnHosts = forwardingOf(r).arrived, forwardingOf(r).by.Hosts
	addresses, err := s.options.Allocator.Adder.Allocate(r.Context(), request)
	if err != nil {
		s.reportRefusal(request, err)
		return nil, "", err
	}
	out := wire.Allocation{
		Host: hostOf(addresses[0], request).String(), ContainerID: in.ContainerID, PodName: in.PodName,
		PodNamespace: in.PodNamespace,
		Owner:        in.Owner, IfName: addresses[0].IfName,
	}
	answered := make([]string, 0, len(addresses))
	for _, a := range addresses {
		out.IPs = append(out.IPs, wireAddress(a))
		answered = append(answered, a.Addr.String())
		out.Migration = out.Migration || a.Migration
	}
	out.Address = out.IPs[0]
	repeated := !slices.ContainsFunc(addresses, func(a allocator.Address) bool { return !a.Repeated })
	s.logDone(r, "allocated", slog.Any("addresses", answered), slog.Bool("repeated", repeated))
	return out, "", nil
}

// reportRefusal reports why a pod got no address, if a receiver is configured.
func (s *Service) reportRefusal(r allocator.Request, err error) {
	if refusal, ok := errors.AsType[*ipam.Refusal](err); ok && s.options.Refused != nil && r.PodName != "" {
		s.options.Refused(r, refusal)
	}
}

// hostOf returns the host that holds an address: the caller's, if an operator took it for an owner without a host.
func hostOf(a allocator.Address, r allocator.Request) netip.Addr {
	if a.Host.IsValid() {
		return a.Host
	}
	return r.Host
}

// parseAllocate checks the fields of an ADD in the same order as the released allocator.
func parseAllocate(in wire.AllocateRequest) (r allocator.Request, err error) {
	if err := complete(in.Host, in.ContainerID, in.PodName, in.PodNamespace, in.Owner); err != nil {
		return r, err
	}
	if err := bounded(allocateFields(in)...); err != nil {
		return r, err
	}
	if err := interfaceName(in.IfName); err != nil {
		return r, err
	}
	if in.Owner == "" {
		if err := podNames(in.PodNamespace, in.PodName); err != nil {
			return r, err
		}
	}
	r = allocator.Request{
		ContainerID: in.ContainerID, IfName: in.IfName, Namespace: in.PodNamespace, PodName: in.PodName,
		PodUID: in.PodUID, Owner: in.Owner, Network: in.Network,
		CNINetwork: in.CNINetwork,
	}
	if r.Host, err = parseHost(in.Host); err != nil {
		return r, err
	}
	if r.Addrs, err = parseAddresses(in.IPAddr); err != nil {
		return r, err
	}
	if r.Families, err = parseFamilies(in.IPFamilyPolicy, in.IPFamilies, r.Addrs); err != nil {
		return r, err
	}
	if r.StartedAt, err = parseStarted(in.StartedAt); err != nil {
		return r, err
	}
	r.HostGateway, err = parseGateway(in.HostGateway)
	return r, err
}

func allocateFields(in wire.AllocateRequest) []field {
	return []field{
		{"host", in.Host, maxAddress}, {"containerID", in.ContainerID, maxContainerID},
		{"podName", in.PodName, maxName}, {"podNamespace", in.PodNamespace, maxNamespace},
		{"ipAddr", in.IPAddr, maxAddress}, {"hostGateway", in.HostGateway, maxAddress},
		{"ipFamilyPolicy", in.IPFamilyPolicy, maxName},
		{"ifName", in.IfName, maxIfName}, {"network", in.Network, maxName}, {"podUID", in.PodUID, maxUID},
		{"startedAt", in.StartedAt, maxTime}, {"owner", in.Owner, maxName},
		{"cniNetwork", in.CNINetwork, maxName},
	}
}

// complete refuses a request that does not name its holder: a container of a pod, or an owner.
func complete(host, containerID, podName, podNamespace, owner string) error {
	if err := whose(host, containerID, podName, podNamespace, owner); err != nil {
		return err
	}
	if owner == "" && (podName == "" || podNamespace == "") {
		return ipam.Refuse(ipam.ReasonMissingField, "lost PodNamespace/PodName info in request")
	}
	return nil
}

// whose refuses a request that names neither a container nor an owner.
func whose(host, containerID, podName, podNamespace, owner string) error {
	switch {
	case host == "" || containerID == "" && owner == "":
		return ipam.Refuse(ipam.ReasonMissingField, "lost Host/ContainerID info in request")
	case owner != "" && (podName != "" || podNamespace != ""):
		return ipam.Refuse(ipam.ReasonBadRequest,
			"owner stands in place of podName and podNamespace: give one or the other")
	}
	return nil
}

// fitLengths refuses an address in ipAddr whose prefix length is not its pool's.
func (s *Service) fitLengths(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		a, bits, err := ipaddr.ParseHost(part)
		if err != nil || bits == 0 {
			continue
		}
		name, _ := s.options.Index.Pools.PoolOf(a)
		if p, ok := s.options.Index.Pools.Get(name); ok && p.Plan.Subnet.Bits() != bits {
			return ipam.Refuse(ipam.ReasonBadAddress, "ipAddr: %s has the length /%d, and pool %s the length /%d", a,
				bits, name, p.Plan.Subnet.Bits()).WithHint("write %s", a)
		}
	}
	return nil
}
