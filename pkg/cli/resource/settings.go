package resource

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// SettingWord returns the word for a setting in sentences.
func SettingWord(name string) string {
	switch name {
	case lease.SettingVLAN, lease.SettingMTU, lease.SettingDNS:
		return strings.ToUpper(name)
	default:
		return name
	}
}

// settingValue returns the value of a setting as text; empty if it has none.
func settingValue(s lease.Settings, name string) string {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	switch name {
	case lease.SettingGateway:
		return AddrText(s.Gateway)
	case lease.SettingVLAN:
		return number(s.VLAN)
	case lease.SettingMTU:
		return number(s.MTU)
	case lease.SettingRoutes:
		lines := s.RouteLines()
		for i, r := range s.Routes {
			lines[i] = "route " + lines[i]
			if !r.GW.IsValid() && s.Gateway.IsValid() {
				lines[i] += " via " + s.Gateway.String()
			}
		}
		return strings.Join(lines, ", ")
	default:
		lines := s.DNSLines()
		for i, line := range lines {
			lines[i] = strings.TrimPrefix(line, "nameserver ")
		}
		return strings.Join(lines, ", ")
	}
}

// SettingText describes a setting: "gateway 10.20.0.1", "no VLAN".
func SettingText(s lease.Settings, name string) string {
	switch v := settingValue(s, name); {
	case v == "":
		return "no " + SettingWord(name)
	case name == lease.SettingRoutes:
		return v
	default:
		return SettingWord(name) + " " + v
	}
}

// settingChange describes a setting before and now: "VLAN 100, now 200".
func settingChange(was, now lease.Settings, name string) string {
	v := settingValue(now, name)
	if v == "" {
		v = "none"
	}
	if settingValue(was, name) == settingValue(now, name) { // a digest stands for what was
		return "other " + SettingWord(name) + ", now " + v
	}
	return SettingText(was, name) + ", now " + v
}

// SettingChanges describes the given settings that differ from the pool's present ones; empty if none do.
func SettingChanges(g lease.Given, now lease.Settings) string {
	was, _ := g.Settings(now)
	parts := app.Map(g.Differs(now), func(name string) string { return settingChange(was, now, name) })
	return strings.Join(parts, "; ")
}

// SettingsText lists those of the named settings that have a value.
func SettingsText(s lease.Settings, names []string) string {
	var parts []string
	for _, name := range names {
		if settingValue(s, name) != "" {
			parts = append(parts, SettingText(s, name))
		}
	}
	return strings.Join(parts, ", ")
}

// CoolingIn reports whether a free address of a pool is in cooldown at now.
func CoolingIn(p ipam.Pool, l lease.Lease, now time.Time) bool {
	return l.CoolsUntil(p.Cooldown).After(now) && p.Usable().Contains(l.Addr)
}

// CooldownOf checks the value of --cooldown.
func CooldownOf(d time.Duration) (*metav1.Duration, error) {
	switch {
	case d == 0:
		return nil, nil
	case d < 0 || d > v1.MaxCooldown || d%time.Second != 0:
		return nil, app.Usagef("--cooldown %s is not a number of whole seconds up to %s", d,
			explain.FormatSpan(v1.MaxCooldown))
	}
	return &metav1.Duration{Duration: d}, nil
}
