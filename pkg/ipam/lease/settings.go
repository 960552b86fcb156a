package lease

import "net/netip"

// Settings are what an answer says of an address beside the address itself: what its holder's interface is set up with.
type Settings struct {
	Gateway netip.Addr
	// GatewayFrom names the source of the gateway.
	GatewayFrom GatewaySource
	Link
}

// GatewaySource says who named a gateway.
type GatewaySource string

// Values of GatewaySource.
const (
	FromPool       GatewaySource = ""
	FromHost       GatewaySource = "Host"
	FromAnnotation GatewaySource = "Annotation"
)

// Link has what the CNI plugin gets of a pool beside the address and the gateway.
type Link struct {
	VLAN, MTU int
	Routes    []Route
	DNS       *DNS
}

// Route for the pod; GW is invalid if the gateway of the answer is meant.
type Route struct {
	Dst netip.Prefix
	GW  netip.Addr
}

// DNS is the resolver configuration of the CNI specification.
type DNS struct {
	Nameservers []string
	Domain      string
	Search      []string
	Options     []string
}

// Names of settings, as in the spec of a pool.
const (
	SettingGateway = "gateway"
	SettingVLAN    = "vlan"
	SettingMTU     = "mtu"
	SettingRoutes  = "routes"
	SettingDNS     = "dns"
)

// SettingNames returns the names of all settings in the order in which they are shown.
func SettingNames() []string {
	return []string{SettingGateway, SettingVLAN, SettingMTU, SettingRoutes, SettingDNS}
}

// Differ returns the names of the settings that are not the same in both.
func (s Settings) Differ(o Settings) []string { return s.fields().differ(o.fields()) }
