package address

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// write prints addresses one after the other.
func (v *ipDescribe) write(views []addressView) error {
	var b bytes.Buffer
	for i, view := range views {
		if i > 0 {
			b.WriteString("\n")
		}
		v.head(&b, view)
		if err := v.earlier(&b, view); err != nil {
			return err
		}
		printer.Section(&b, "Next", v.next(view))
	}
	_, err := v.Out.Write(b.Bytes())
	return err
}

func (v *ipDescribe) head(b *bytes.Buffer, a addressView) {
	line := func(label, format string, args ...any) {
		printer.Line(b, 12, label+":", fmt.Sprintf(format, args...))
	}
	line("Address", "%s", a.text())
	state := a.State.String()
	if a.State == lease.Available {
		state = "free"
		switch {
		case a.cooling():
			state = "cooling"
		case a.refusal != nil:
			state += ", but nobody gets it"
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
	fmt.Fprintf(b, "%-12s %s\n", "State:", v.Terminal.Paint(map[lease.State]terminal.Color{
		lease.Available: terminal.Green, lease.Active: terminal.Cyan, lease.Reserved: terminal.Yellow,
	}[a.State], state))
	if why := a.why(); why != "" {
		line("Why", "%s", why)
	}
	if a.State == lease.Active {
		line("Held by", "%s", a.holder())
	}
	if c := a.Reservation(); c.By != "" {
		line("By", "%s", c.By)
	}
	if c := a.Reservation(); c.Reason != "" {
		line("Reason", "%s", c.Reason)
	}
	if c := a.Conflict; c != nil {
		line("Conflict", "%s answered for it, %s; reported by a container on %s, outcome %s", c.MAC, resource.TimeText(c.At),
			resource.AddrText(c.Host), c.Outcome)
	}
	a.claimLines(line)
	if a.Host.IsValid() {
		line("Host", "%s", a.Host)
	}
	if a.ContainerID != "" {
		line("Container", "%s, interface %s", a.ContainerID, a.IfName)
	}
	if a.CNINetwork != "" {
		line("CNI network", "%s", a.CNINetwork)
	}
	if h := a.Other; h != nil {
		line("Migrates to", "%s on %s", h.Who(), resource.AddrText(h.Host))
		line("Container", "%s, interface %s", h.ContainerID, h.IfName)
	}
	if pool := a.pool(); pool != "" {
		line("Pool", "%s", pool)
	}
	a.givenLines(line)
	if !a.Updated.IsZero() {
		line("Since", "%s, %s", resource.TimeText(a.Updated), v.Age(a.Updated))
	}
}

// cooling reports whether only its pool's cooldown keeps a free address.
func (a addressView) cooling() bool {
	return a.State == lease.Available && a.refusal != nil && a.refusal.Reason == ipam.ReasonAddressCooling
}

// text returns the address with its prefix length and gateway.
func (a addressView) text() string {
	p := a.Params
	if p.Pool == "" && a.serving.Name != "" {
		p = a.serving.Params()
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

// givenLines say what the holder's container was given, and in what the pool says something else now.
func (a addressView) givenLines(line func(label, format string, args ...any)) {
	now := a.named.Settings()
	given, known := a.Given.Settings(now)
	if !known {
		return
	}
	if text := resource.SettingsText(given, lease.SettingNames()); text != "" {
		line("Given", "%s", text)
	}
	if !a.exists || !a.named.Valid() {
		return
	}
	if changes := resource.SettingChanges(a.Given, now); changes != "" {
		line("Outdated", "%s; its pod keeps that until it is made again", changes)
	}
}

// holder puts into words who has the address, and what became of it.
func (a addressView) holder() string {
	switch {
	case a.Owner != "":
		return a.Owner + ", which is no pod"
	case a.unread != nil:
		return fmt.Sprintf("%s; it is unknown whether the pod lives: %v", a.Who(), a.unread)
	case a.pod.Text != "":
		return fmt.Sprintf("%s; the pod %s", a.Who(), a.pod.Text)
	default:
		return a.Who()
	}
}

// pool names the pool that the address belongs to, and what is odd about that.
func (a addressView) pool() string {
	name := a.Pool
	if name == "" {
		name = a.serving.Name
	}
	switch {
	case name == "":
		return ""
	case a.Pool == "":
	case !a.exists:
		name += ", which does not exist any more"
	case a.named.Terminating:
		name += ", which is being deleted"
	case a.State != lease.Available && a.named.Lacks(a.Addr):
		name += ", which does not list it any more (it drains)"
	}
	if a.Pool != "" && a.serving.Name != "" && a.serving.Name != a.Pool {
		name += "; pool " + a.serving.Name + " has it now"
	}
	return name
}

// why puts into words why nobody gets a free address; empty where somebody may.
func (a addressView) why() string {
	switch {
	case a.State != lease.Available || a.refusal == nil:
		return ""
	case a.near != "":
		return "it is in no pool; the nearest is pool " + a.near
	}
	return a.refusal.Message
}

// earlier lists what happened to the address before.
func (v *ipDescribe) earlier(b *bytes.Buffer, a addressView) error {
	var rows []pastRow
	for _, r := range pastRows(a.Lease) {
		if !r.current {
			rows = append(rows, r)
		}
	}
	if a.Reservation() != (lease.Change{}) {
		rows = rows[1:] // the head shows it
	}
	if len(rows) == 0 {
		return nil
	}
	b.WriteString("\nEarlier:\n")
	var t bytes.Buffer
	err := printer.Table[pastRow]{Headers: true, Columns: pastColumns()[1:]}.Write(&t, rows) // it is one address
	for line := range strings.Lines(t.String()) {
		b.WriteString("  " + line)
	}
	return err
}

// next names the command that changes what is.
func (v *ipDescribe) next(a addressView) []string {
	line := func(what, command string) []string { return []string{"  " + what + ": " + v.Called(command)} }
	addr := a.Addr.String()
	switch {
	case a.IsRetained():
		lines := line("give it back to its pool", "bcsnetctl ip release "+addr)
		if a.claim != nil {
			lines = append(lines, line("see its claim", "bcsnetctl claim describe "+a.Claim)...)
		}
		return lines
	case a.IsQuarantined():
		return line("end the quarantine", "bcsnetctl ip release "+addr)
	case a.State == lease.Reserved:
		return line("have it handed out again", "bcsnetctl ip unreserve "+addr)
	case a.State == lease.Active && a.pod.Lives:
		return append(line("delete the pod, which gives it back", "kubectl -n "+a.Namespace+" delete pod "+a.PodName),
			line("take it from the pod that lives", "bcsnetctl ip release "+addr+" --force")...)
	case a.State == lease.Active && a.pod.MayRun:
		return line("take it away before that is sure", "bcsnetctl ip release "+addr+" --force")
	case a.State == lease.Active && a.KeptOnRelease():
		return line("leave it to its claim alone", "bcsnetctl ip release "+addr)
	case a.State == lease.Active:
		return line("free it", "bcsnetctl ip release "+addr)
	case a.refusal == nil, a.cooling():
		return line("set it aside", "bcsnetctl ip reserve "+addr+" --reason TEXT")
	case a.near != "":
		return line("see its addresses", "bcsnetctl pool describe "+a.near)
	case a.refusal.Hint != "" && strings.Contains(a.refusal.Hint, "bcsnetctl "):
		return []string{"  " + v.Called(a.refusal.Hint)}
	}
	return nil
}
