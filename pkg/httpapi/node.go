package httpapi

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// attachmentsCodec is the codec of a list of all attachments of a host, which is longer than other bodies.
type attachmentsCodec struct{ envelopeCodec }

// maxAttachmentsBody has room for wire.MaxAttachments with the longest IDs and names.
const maxAttachmentsBody = 4 << 20

func (attachmentsCodec) maxBody() int64 { return maxAttachmentsBody }

func (s *Service) collectNetwork(r *http.Request, body []byte) (any, string, error) {
	var in wire.GCRequest
	if err := s.bodies.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	addAttrs(r.Context(), slog.String("host", clip(in.Host)), slog.String("cni_network", clip(in.CNINetwork)))
	request, err := parseGC(in)
	if err != nil {
		return nil, "", err
	}
	request.ArrivedAt = forwardingOf(r).arrived
	done, err := s.options.Allocator.Repairer.CollectNetwork(r.Context(), request)
	s.logReleased(r, done.Released)
	s.unlisted(r, done)
	switch {
	case err != nil && len(done.Released) > 0:
		return nil, "", partly(err, request.Host, done.Released)
	case err != nil:
		return nil, "", err
	}
	out := wire.GCResult{
		Host: in.Host, CNINetwork: in.CNINetwork, IPs: names(done.Released), Kept: make([]wire.Attachment, 0,
			len(done.Kept)),
	}
	for _, at := range done.Kept {
		out.Kept = append(out.Kept, wire.Attachment(at))
	}
	return out, "", nil
}

// maxNamed bounds the addresses in a line of the log.
const maxNamed = 16

// unlisted counts the outcomes for leases that a list lacks, and logs the leases that keep their address.
func (s *Service) unlisted(r *http.Request, done allocator.NetworkCollected) {
	for _, of := range []struct {
		outcome, message string
		leases           []lease.Lease
	}{
		{outcomeReleased, "", done.Released},
		{outcomeRunning, "a garbage collection's list lacks pods that are there: they keep their addresses",
			done.Running},
		{outcomeWaiting,
			"a garbage collection's list lacks pods that are gone and may still end: they are collected later",
			done.Waiting},
	} {
		s.options.Metrics.unlisted.WithLabelValues(of.outcome).Add(float64(len(of.leases)))
		if n := len(of.leases); n > 0 && of.message != "" {
			s.logDone(r, of.message, slog.Int("count", n), slog.Any("addresses", names(of.leases[:min(n, maxNamed)])))
		}
	}
}

// parseGC parses a list of attachments. An error in any of them refuses the whole list, so that its sender learns of
// the error.
func parseGC(in wire.GCRequest) (g allocator.NetworkGC, err error) {
	for _, f := range gcFields(in) {
		if f.value == "" {
			return g, ipam.Refuse(ipam.ReasonMissingField, "%s is missing", f.name)
		}
		if err := bounded(f); err != nil {
			return g, err
		}
	}
	switch {
	case in.Attachments == nil:
		return g, ipam.Refuse(ipam.ReasonMissingField, "attachments is missing").
			WithHint("if the network has none on the host, send an empty list")
	case len(in.Attachments) > wire.MaxAttachments:
		return g, ipam.Refuse(ipam.ReasonBadRequest, "attachments has %d entries, more than %d", len(in.Attachments),
			wire.MaxAttachments)
	}
	g = allocator.NetworkGC{CNINetwork: in.CNINetwork, Attachments: make([]allocator.Attachment, 0,
		len(in.Attachments))}
	if g.Host, err = parseHost(in.Host); err != nil {
		return g, err
	}
	if g.StartedAt, err = parseStarted(in.StartedAt); err != nil {
		return g, err
	}
	for i, a := range in.Attachments {
		if err := checkAttachment(fmt.Sprintf("attachments[%d].", i), a); err != nil {
			return g, err
		}
		g.Attachments = append(g.Attachments, allocator.Attachment(a))
	}
	return g, nil
}

func gcFields(in wire.GCRequest) []field {
	return []field{
		{"host", in.Host, maxAddress}, {"cniNetwork", in.CNINetwork, maxName}, {"startedAt", in.StartedAt, maxTime},
	}
}

// checkAttachment refuses an invalid attachment. before is the prefix of its fields in messages.
func checkAttachment(before string, a wire.Attachment) error {
	if a.ContainerID == "" {
		return ipam.Refuse(ipam.ReasonMissingField, "%scontainerID is missing", before)
	}
	if err := bounded(attachmentFields(before, a)...); err != nil {
		return err
	}
	return interfaceName(a.IfName)
}

func attachmentFields(before string, a wire.Attachment) []field {
	return []field{{before + "containerID", a.ContainerID, maxContainerID}, {before + "ifName", a.IfName, maxIfName}}
}

func (s *Service) reportConflict(r *http.Request, body []byte) (any, string, error) {
	addr, err := parseAddress(r.PathValue("address"))
	if err != nil {
		return nil, "", err
	}
	var in wire.ConflictRequest
	if err := s.bodies.decode(r, body, &in); err != nil {
		return nil, "", err
	}
	addHolderAttrs(r.Context(), "", in.ContainerID, "", "", "")
	report := allocator.ConflictReport{
		Addr: addr, ContainerID: in.ContainerID, IfName: in.IfName, OnHosts: forwardingOf(r).by.Hosts,
	}
	if report.MAC, err = parseConflict(in); err != nil {
		return nil, "", err
	}
	found, err := s.options.Allocator.Reporter.ReportConflict(r.Context(), report)
	if c := found.Now.Conflict; c != nil && !found.Repeated && (err == nil || c.Outcome == lease.ConflictKept) {
		s.options.Metrics.conflicts.WithLabelValues(c.Outcome.String()).Inc()
		if s.options.Contested != nil {
			s.options.Contested(r.Context(), found)
		}
		s.logDone(r, "address conflict", slog.String("address", addr.String()), slog.String("mac", c.MAC),
			slog.String("outcome", c.Outcome.String()))
	}
	if err != nil {
		return nil, "", err
	}
	out, message := conflictResult(found)
	return out, message, nil
}

// conflictResult returns the answer for a container that lost an address, with a message if the address is not
// quarantined.
func conflictResult(found allocator.Contested) (wire.ConflictResult, string) {
	l := found.Now
	out := wire.ConflictResult{IPAddr: l.Addr.String(), Pool: l.Pool, MAC: l.Conflict.MAC}
	if l.Conflict.Outcome != lease.ConflictQuarantined {
		return out,
			fmt.Sprintf("%s answers for address %s: it is free and not quarantined, because the MAC answers for "+
				"several addresses, or too many of pool %s were quarantined within an hour (bcsnetctl doctor has more)",
				out.MAC, out.IPAddr, out.Pool)
	}
	out.Quarantined, out.Until = true, l.Conflict.Until.UTC().Format(time.RFC3339)
	return out, ""
}

func conflictFields(in wire.ConflictRequest) []field {
	return append(attachmentFields("", wire.Attachment{ContainerID: in.ContainerID, IfName: in.IfName}),
		field{"mac", in.MAC, maxMAC})
}

// parseConflict checks a report, and returns its MAC in lower case with colons.
func parseConflict(in wire.ConflictRequest) (mac string, err error) {
	if err := checkAttachment("", wire.Attachment{ContainerID: in.ContainerID, IfName: in.IfName}); err != nil {
		return "", err
	}
	if err := bounded(conflictFields(in)...); err != nil {
		return "", err
	}
	if in.MAC == "" {
		return "", ipam.Refuse(ipam.ReasonMissingField, "mac is missing: who answered for the address")
	}
	parsed, err := net.ParseMAC(in.MAC)
	if err != nil || len(parsed) != 6 || [6]byte(parsed) == [6]byte{} {
		return "", ipam.Refuse(ipam.ReasonBadRequest,
			"mac %q is not the MAC of an interface, such as 02:00:5e:10:00:01", clip(in.MAC))
	}
	return parsed.String(), nil
}
