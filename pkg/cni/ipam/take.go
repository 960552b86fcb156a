package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/probe"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/internal/failpoint"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// maxTakes bounds the addresses that one ADD takes, one after the other, if other machines use them.
const maxTakes = 3

// endingTime is the time after an answer after which the network is asked again. The interface of an ending pod is gone
// by then: after its DEL has released the address, it delivers earlier releases for at most deliverTime.
const endingTime = 2 * deliverTime

// conflictError says that other machines use the addresses that an ADD got.
type conflictError struct {
	answers []probe.Answer
	// brake reports whether the allocator no longer quarantines the addresses, because one machine answers for too many
	// of them.
	brake bool
	// refused is the allocator's refusal if the address stays with its claim or was requested by name.
	refused *client.Refusal
}

// Error returns the MAC that answers for each address.
func (e *conflictError) Error() string {
	if e.refused != nil {
		return fmt.Sprintf("%s (%s)", e.refused.Message, e.refused.Reason)
	}
	texts := make([]string, 0, len(e.answers))
	for _, a := range e.answers {
		texts = append(texts, fmt.Sprintf("%s answers for %s", a.MAC, a.Addr))
	}
	return fmt.Sprintf("addresses are in use by somebody else: %s (%s)", strings.Join(texts, ", "),
		ipam.ReasonAddressConflict)
}

func (e *conflictError) details() string {
	switch {
	case e.refused != nil && e.refused.Hint != "":
		return "hint: " + e.refused.Hint
	case e.brake:
		return "hint: this looks like proxy ARP, by which a router answers for every address: turn it off towards " +
			"the pods, or \"probe\" in the network configuration"
	default:
		return "hint: look for the machine with this MAC in the network"
	}
}

// take returns addresses that no other machine uses. If a machine answers for an address, take reports it and takes
// another one in the same ADD.
func (c *call) take(ctx context.Context) (*allocation, error) {
	var found conflictError
	for range maxTakes {
		a, err := c.allocate(ctx)
		if err != nil {
			if len(found.answers) > 0 { // one address of a set of two may still be held
				c.note("%v", &found)
				c.giveBack(ctx)
			}
			return nil, err
		}
		failpoint.Kill("ipam-add-taken")
		c.line.Addrs = a.texts()
		if err := c.checkVLAN(a); err != nil {
			c.giveBack(ctx)
			return nil, err
		}
		answers := c.probe(ctx, a)
		failpoint.Kill("ipam-add-probed")
		if len(answers) == 0 {
			return a, nil
		}
		found.answers = append(found.answers, answers...)
		if !c.reportAll(ctx, answers, &found) {
			if found.refused == nil { // Without a quarantine, the next ADD may find the same conflict.
				c.giveBack(ctx)
			}
			return nil, &found // a refused address stays the container's until its DEL
		}
		failpoint.Kill("ipam-add-reported")
	}
	c.giveBack(ctx) // as above
	return nil, &found
}

// probe returns the machines that already use the addresses, if the configuration asks for that.
func (c *call) probe(ctx context.Context, a *allocation) []probe.Answer {
	if !c.conf.Probe || a.Migration { // the other pod of a migrating machine answers, too
		return nil
	}
	return c.others(ctx, a.netips())
}

// others returns the machines that answer for addresses. Without a link, as with the main plugin ptp, there is nobody
// to ask. Every answer is confirmed by a second question: macvlan, vlan and others release addresses before they remove
// the interface, so the first answer may come from an ending pod.
func (c *call) others(ctx context.Context, addrs []netip.Addr) []probe.Answer {
	request := probe.Request{NetNS: c.netns, IfName: c.line.IfName, Addrs: addrs}
	answers, err := c.plugin.Probe(ctx, request)
	if len(answers) > 0 {
		select {
		case <-time.After(endingTime):
		case <-ctx.Done():
		}
		if still, err := c.plugin.Probe(ctx, request); err == nil {
			answers = still
		}
		answers = slices.DeleteFunc(answers, c.ofOwnEarlier)
	}
	if err != nil && !errors.Is(err, probe.ErrNoLink) {
		c.note("nobody was asked whether %v are in use: %v", addrs, err)
	}
	return answers
}

// ofOwnEarlier reports whether an answer comes from an earlier container of the same pod whose DEL has not arrived: the
// allocator has given its address to this container.
func (c *call) ofOwnEarlier(answer probe.Answer) bool {
	earlier, err := c.attachments().Find(func(x *attach.Attachment) bool {
		return x.ContainerID != c.line.ContainerID && x.IfName == c.line.IfName && slices.Contains(x.Addrs,
			answer.Addr) &&
			x.Pod == c.conf.Pod.String() && x.PodUID == c.conf.Pod.UID
	})
	if err != nil || earlier == nil {
		return false
	}
	c.note("%s answers for %s: container %s of the same pod is not deleted yet", answer.MAC, answer.Addr,
		earlier.ContainerID)
	return true
}

// reportAll reports who answers for each address, until report returns false. The answers are sorted by address.
func (c *call) reportAll(ctx context.Context, answers []probe.Answer, found *conflictError) bool {
	for i, answer := range answers {
		if i > 0 && answers[i-1].Addr == answer.Addr {
			continue // the interface no longer has the address
		}
		if !c.report(ctx, answer, found) {
			return false
		}
	}
	return true
}

// report reports to the allocator who answers for an address. It returns whether the allocator has quarantined the
// address, so that the interface no longer has it. An address that is kept or was requested by name stays: then found
// has the refusal.
func (c *call) report(ctx context.Context, answer probe.Answer, found *conflictError) bool {
	request := wire.ConflictRequest{
		ContainerID: c.line.ContainerID, IfName: c.line.IfName, MAC: answer.MAC.String(),
	}
	err := c.client.Do(ctx, client.Call{
		Method: http.MethodPost, Path: wire.Prefix + "/ip/" + answer.Addr.String() + "/conflict", Body: request,
		RequestID: c.line.RequestID, Once: true,
		Accept: func(data json.RawMessage) error {
			var r wire.ConflictResult
			if err := json.Unmarshal(data, &r); err != nil {
				return err
			}
			if r.IPAddr != answer.Addr.String() {
				return fmt.Errorf("it is about address %.80q", r.IPAddr)
			}
			found.brake = found.brake || !r.Quarantined
			return nil
		},
	})
	if err == nil {
		return !found.brake
	}
	refused, _ := errors.AsType[*client.Refusal](err)
	switch {
	case refused != nil && refused.Reason == ipam.ReasonAddressConflict:
		found.refused = refused
	case refused != nil && refused.Reason == ipam.ReasonTooManyConflicts:
		found.brake = true
	default:
		c.note("the conflict could not be reported: %v", err)
	}
	return false
}
