package view

import (
	"fmt"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Facts describes an address.
func (a Address) Facts(s *app.App) (f Facts) {
	f.add("Address", "%s", a.text())
	state := a.State.String()
	color := map[lease.State]terminal.Color{
		lease.Available: terminal.Green, lease.Active: terminal.Cyan, lease.Reserved: terminal.Yellow,
	}[a.State]
	if a.State == lease.Available {
		state = "free"
		switch {
		case a.cooling():
			state = "cooling"
		case a.refusal != nil && a.Serving.Name == "" && a.role != "":
			state, color = a.role, ""
		case a.refusal != nil:
			state, color = state+", but nobody gets it", terminal.Yellow
		}
	}
	if a.IsRetained() {
		state = "kept for its claim, and no pod has it"
	}
	if a.IsQuarantined() {
		state = "quarantined, and nobody gets it until " + resource.TimeText(a.Conflict.Until)
	}
	if a.Deleting {
		state += ", and its object is being deleted"
	}
	f.paint(state, color)
	if why := a.Why(); why != "" {
		f.add("Why", "%s", why)
	}
	if a.State == lease.Active {
		f.add("Held by", "%s", a.holder())
	}
	if c := a.Reservation(); c.By != "" {
		f.add("By", "%s", c.By)
	}
	if c := a.Reservation(); c.Reason != "" {
		f.add("Reason", "%s", c.Reason)
	}
	if c := a.Conflict; c != nil {
		f.add("Conflict", "%s answered for it, %s; reported by a container on %s, outcome %s", c.MAC,
			resource.TimeText(c.At), resource.AddrText(c.Host), c.Outcome)
	}
	a.claimFacts(&f)
	if a.Host.IsValid() {
		f.add("Host", "%s", a.Host)
	}
	if a.ContainerID != "" {
		f.add("Container", "%s, interface %s", a.ContainerID, a.IfName)
	}
	if a.CNINetwork != "" {
		f.add("CNI network", "%s", a.CNINetwork)
	}
	if h := a.Other; h != nil {
		f.add("Migrates to", "%s on %s", h.Who(), resource.AddrText(h.Host))
		f.add("Container", "%s, interface %s", h.ContainerID, h.IfName)
	}
	if pool := a.poolText(); pool != "" {
		f.add("Pool", "%s", pool)
	}
	a.addGiven(&f)
	if !a.Updated.IsZero() {
		f.add("Since", "%s, %s", resource.TimeText(a.Updated), s.Age(a.Updated))
	}
	return f
}

// cooling reports whether a free address is in cooldown, and nothing else prevents its allocation.
func (a Address) cooling() bool {
	return a.State == lease.Available && a.refusal != nil && a.refusal.Reason == ipam.ReasonAddressCooling
}

// text returns the address with its prefix length and gateway.
func (a Address) text() string {
	p := a.Params
	if p.Pool == "" && a.Serving.Name != "" {
		p = a.Serving.Params()
	}
	text := a.Addr.String()
	if p.Bits > 0 {
		text += fmt.Sprintf("/%d", p.Bits)
	}
	if a.Given.Known() {
		p.Gateway = a.UsedGateway()
	}
	if p.Gateway.IsValid() {
		text += ", gateway " + p.Gateway.String()
	}
	return text
}

// addGiven adds the settings that the container was given, and those that its pool has changed since.
func (a Address) addGiven(f *Facts) {
	now := a.named.Settings()
	given, known := a.Given.Settings(now)
	if !known {
		return
	}
	if text := resource.SettingsText(given, lease.SettingNames()); text != "" {
		f.add("Given", "%s", text)
	}
	if !a.exists || !a.named.Valid() {
		return
	}
	if changes := resource.SettingChanges(a.Given, now); changes != "" {
		f.add("Outdated", "%s; its pod keeps these settings until it is created again", changes)
	}
}

// holder describes the holder and the state of its pod.
func (a Address) holder() string {
	switch {
	case a.object.Unread != nil:
		return fmt.Sprintf("%s; it is unknown whether the %s exists: %v", a.Owner, a.object.What(), a.object.Unread)
	case a.object.Text != "":
		return fmt.Sprintf("%s; the %s %s", a.Owner, a.object.What(), a.object.Text)
	case a.Owner != "":
		return a.Owner + ", which is not a pod"
	case a.unread != nil:
		return fmt.Sprintf("%s; it is unknown whether the pod lives: %v", a.Who(), a.unread)
	case a.pod.Text != "":
		return fmt.Sprintf("%s; the pod %s", a.Who(), a.pod.Text)
	default:
		return a.Who()
	}
}

// poolText names the pool of the address, and anything unusual about it.
func (a Address) poolText() string {
	name := a.Pool
	if name == "" {
		name = a.Serving.Name
	}
	switch {
	case name == "":
		return ""
	case a.Pool == "":
	case !a.exists:
		name += ", which no longer exists"
	case a.named.Terminating:
		name += ", which is being deleted"
	case a.State != lease.Available && a.named.Lacks(a.Addr):
		name += ", which no longer lists it (it drains)"
	}
	if a.Pool != "" && a.Serving.Name != "" && a.Serving.Name != a.Pool {
		name += "; pool " + a.Serving.Name + " has it now"
	}
	return name
}

// Why says why a free address cannot be allocated; empty if it can.
func (a Address) Why() string {
	switch {
	case a.State != lease.Available || a.refusal == nil:
		return ""
	case a.near != "":
		return "it is in no pool; the nearest is pool " + a.near
	}
	return a.refusal.Message
}

// Earlier returns the address's past, newest first.
func (a Address) Earlier() (rows []Past) {
	for _, r := range PastOf(a.Lease) {
		if !r.Current {
			rows = append(rows, r)
		}
	}
	if a.Reservation() != (lease.Change{}) {
		rows = rows[1:] // it is among the facts
	}
	return rows
}

// Healthy reports whether the address is in use by something that exists, so that its commands only serve to free it.
func (a Address) Healthy() bool {
	return a.State == lease.Active && !a.Deleting && (a.object.Exists || a.pod.Lives)
}

// Next returns commands that change the state of the address.
func (a Address) Next() (n Steps) {
	addr := a.Addr.String()
	switch {
	case a.IsRetained():
		n.add("return it to its pool", "bcsnetctl ip release "+addr)
		if a.claim != nil {
			n.add("see its claim", "bcsnetctl claim describe "+a.Claim)
		}
	case a.IsQuarantined():
		n.add("end the quarantine", "bcsnetctl ip release "+addr)
	case a.State == lease.Reserved:
		n.add("end the reservation", "bcsnetctl ip unreserve "+addr)
	case a.State == lease.Active && a.object.Exists:
		o := a.object
		n.add("delete the "+o.What()+", which releases it",
			"kubectl -n "+o.Namespace+" delete "+strings.ToLower(o.What())+" "+o.Name)
	case a.State == lease.Active && a.pod.Lives:
		n.add("delete the pod, which releases it", "kubectl -n "+a.Namespace+" delete pod "+a.PodName)
		n.add("take it from the running pod", "bcsnetctl ip release "+addr+" --force")
	case a.State == lease.Active && a.pod.MayRun:
		n.add("release it although containers may still use it", "bcsnetctl ip release "+addr+" --force")
	case a.State == lease.Active && a.KeptOnRelease():
		n.add("release it; its claim keeps it", "bcsnetctl ip release "+addr)
	case a.State == lease.Active:
		n.add("free it", "bcsnetctl ip release "+addr)
	case a.refusal == nil, a.cooling():
		n.add("set it aside", "bcsnetctl ip reserve "+addr+" --reason TEXT")
	case a.near != "":
		n.add("see its addresses", "bcsnetctl pool describe "+a.near)
	case a.refusal.Hint != "" && strings.Contains(a.refusal.Hint, "bcsnetctl "):
		n.hint(a.refusal.Hint)
	}
	return n
}
