package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

func (s *Service) release(r *http.Request, body []byte) (any, string, error) {
	var in wire.ReleaseRequest
	if err := s.bodies.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	addHolderAttrs(r.Context(), in.Host, in.ContainerID, in.PodNamespace, in.PodName, in.Owner)
	request, err := parseRelease(in)
	if err != nil {
		return nil, "", err
	}
	s.alsoRelease(r.Context(), in)
	reach(r, in, &request)
	released, err := s.options.Allocator.Releaser.Release(r.Context(), request)
	s.logReleased(r, released)
	if err != nil {
		return nil, "", err
	}
	out := wire.Release{
		Host: in.Host, ContainerID: in.ContainerID, PodName: in.PodName, PodNamespace: in.PodNamespace, Owner: in.Owner,
		IPs: names(released),
	}
	if len(released) > 0 {
		return out, "", nil
	}
	if in.ContainerID == "" {
		return out, fmt.Sprintf("didn't find related BCSNetIP instance for owner %s", in.Owner), nil
	}
	return out, fmt.Sprintf("didn't find related BCSNetIP instance for container %s", in.ContainerID), nil
}

// reach sets the hosts and the namespace that a release may affect, and its time of arrival.
func reach(r *http.Request, in wire.ReleaseRequest, request *allocator.ReleaseRequest) {
	h := forwardingOf(r)
	if request.ArrivedAt, request.OnHosts = h.arrived, h.by.Hosts; h.by.Name != "" {
		request.Namespace = in.PodNamespace // empty: the caller has permission in all namespaces
	}
}

// releaseFrees reports whether, by what this replica knows, a DEL frees an address. A malformed DEL frees none.
func (s *Service) releaseFrees(r *http.Request, body []byte) bool {
	var in wire.ReleaseRequest
	if json.Unmarshal(body, &in) != nil {
		return false
	}
	request, err := parseRelease(in)
	reach(r, in, &request)
	return err == nil && s.options.Allocator.Releaser.Frees(request)
}

// releaseAddressFrees reports the same for the release of one address.
func (s *Service) releaseAddressFrees(r *http.Request, body []byte) bool {
	var in wire.ReleaseAddressRequest
	addr, err := parseAddress(r.PathValue("address"))
	return err == nil && json.Unmarshal(body, &in) == nil &&
		s.options.Allocator.Releaser.FreesAddress(addr, in.ContainerID, in.Owner, forwardingOf(r).by.Hosts)
}

// parseRelease requires fewer fields than a POST: a refused DEL would be repeated forever. The pod's names free
// nothing, and some runtimes omit them.
func parseRelease(in wire.ReleaseRequest) (r allocator.ReleaseRequest, err error) {
	if err := whose(in.Host, in.ContainerID, in.PodName, in.PodNamespace, in.Owner); err != nil {
		return r, err
	}
	if err := bounded(releaseFields(in)...); err != nil {
		return r, err
	}
	host, err := parseHost(in.Host)
	if err != nil {
		return r, err
	}
	started, err := parseStarted(in.StartedAt)
	return allocator.ReleaseRequest{
		Host: host, ContainerID: in.ContainerID, IfName: in.IfName, PodUID: in.PodUID, Owner: in.Owner,
		Network:   in.Network,
		StartedAt: started,
	}, err
}

func releaseFields(in wire.ReleaseRequest) []field {
	return []field{
		{"host", in.Host, maxAddress}, {"containerID", in.ContainerID, maxContainerID},
		{"podName", in.PodName, maxName}, {"podNamespace", in.PodNamespace, maxNamespace},
		{"ifName", in.IfName, maxIfName}, {"network", in.Network, maxName}, {"podUID", in.PodUID, maxUID},
		{"startedAt", in.StartedAt, maxTime}, {"owner", in.Owner, maxName},
	}
}

func (s *Service) releaseHost(r *http.Request, _ []byte) (any, string, error) {
	host, err := parseHost(r.PathValue("host"))
	if err != nil {
		return nil, "", err
	}
	addAttrs(r.Context(), slog.String("host", host.String()))
	released, err := allocator.ReleaseHost(r.Context(), s.options.Leases, host, forwardingOf(r).arrived,
		lease.Change{Verb: lease.VerbReleaseHost, By: forwardingOf(r).author()})
	s.logReleased(r, released)
	switch {
	case err != nil && len(released) > 0:
		return nil, "", partly(err, host, released)
	case err != nil:
		return nil, "", err
	case len(released) == 0:
		return names(released), fmt.Sprintf("host %s holds no address", host), nil
	}
	return names(released), "", nil
}

// partly returns the refusal for a request that was carried out in part.
func partly(err error, host netip.Addr, released []lease.Lease) *ipam.Refusal {
	why := asRefusal(err)
	return ipam.Refuse(why.Reason, "%s; of host %s, %d addresses are released already", why.Message, host,
		len(released)).
		WithHint("%s", cmp.Or(why.Hint, "ask again for the rest"))
}

func (s *Service) releaseAddress(r *http.Request, body []byte) (any, string, error) {
	addr, err := parseAddress(r.PathValue("address"))
	if err != nil {
		return nil, "", err
	}
	var in wire.ReleaseAddressRequest
	if err := s.bodies.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	addHolderAttrs(r.Context(), "", in.ContainerID, "", "", in.Owner)
	if (in.ContainerID == "") == (in.Owner == "") {
		return nil, "", ipam.Refuse(ipam.ReasonMissingField, "give containerID or owner: who holds the address")
	}
	if err := bounded(releaseAddressFields(in)...); err != nil {
		return nil, "", err
	}
	l, released, err := s.options.Allocator.Releaser.ReleaseAddress(r.Context(), addr, in.ContainerID, in.Owner,
		forwardingOf(r).by.Hosts)
	if err != nil {
		return nil, "", err
	}
	if !released {
		return wire.Release{IPs: []string{}}, fmt.Sprintf("address %s is not in use", addr), nil
	}
	s.logReleased(r, []lease.Lease{l})
	out := wire.Release{
		ContainerID: l.ContainerID, Owner: l.Owner, PodName: l.PodName, PodNamespace: l.Namespace,
		IPs: []string{addr.String()},
	}
	if l.Host.IsValid() {
		out.Host = l.Host.String()
	}
	return out, "", nil
}

func releaseAddressFields(in wire.ReleaseAddressRequest) []field {
	return []field{{"containerID", in.ContainerID, maxContainerID}, {"owner", in.Owner, maxName}}
}

func (s *Service) logReleased(r *http.Request, released []lease.Lease) {
	if len(released) > 0 {
		s.logDone(r, "released", slog.Any("addresses", names(released)))
	}
}

// logDone logs a completed request with its attributes.
func (s *Service) logDone(r *http.Request, message string, attrs ...slog.Attr) {
	attrs = append(append(attrs, requestAttrsOf(r.Context())...), slog.String("request_id", idOf(r)))
	s.options.Log.LogAttrs(r.Context(), slog.LevelInfo, message, attrs...)
}

func names(ls []lease.Lease) []string {
	out := make([]string, 0, len(ls))
	for _, l := range ls {
		out = append(out, l.Addr.String())
	}
	return out
}
