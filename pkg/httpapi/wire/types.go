package wire

import "github.com/bcsnet/bcsnet/pkg/ipam"

// Prefix is the beginning of the allocator's routes.
const Prefix = "/netservicecontroller/v1/allocator"

// Envelope is the answer of every allocator route.
type Envelope struct {
	// Code is 0 for success, 1 if the request is wrong, 2 if it cannot be carried out.
	Code    int    `json:"code"`
	Message string `json:"message"`
	Result  bool   `json:"result"`
	// Data is null on error.
	Data any `json:"data"`
	// RequestID echoes the header X-Request-Id, or is new.
	RequestID string `json:"request_id"`
	// Reason is a stable word for the cause of a failure; empty on success.
	Reason ipam.Reason `json:"reason,omitempty"`
	// Hint is the next step, if there is one.
	Hint string `json:"hint,omitempty"`
}

// AllocateRequest is the body of POST /netservicecontroller/v1/allocator.
type AllocateRequest struct {
	Host         string `json:"host"`
	ContainerID  string `json:"containerID"`
	PodName      string `json:"podName"`
	PodNamespace string `json:"podNamespace"`
	// IPAddr asks for an address; one of each family, comma-separated, for two.
	IPAddr string `json:"ipAddr"`
	// HostGateway replaces the pool's gateway in the answer if the controller is configured for that.
	HostGateway string `json:"hostGateway"`
	IfName      string `json:"ifName"`
	Network     string `json:"network"`
	// IPFamilyPolicy and IPFamilies select the address families, as in a Service.
	IPFamilyPolicy string   `json:"ipFamilyPolicy"`
	IPFamilies     []string `json:"ipFamilies"`
	PodUID         string   `json:"podUID"`
	// StartedAt is the time at which the plugin began, RFC 3339.
	StartedAt string `json:"startedAt"`
	Owner     string `json:"owner"`
	// CNINetwork is the name of the network configuration (conflist) of the attachment. The lease stores it; only such
	// a lease is collected by the network's garbage collection.
	CNINetwork string `json:"cniNetwork"`
}

// ReleaseRequest is the body of DELETE /netservicecontroller/v1/allocator.
type ReleaseRequest struct {
	Host         string `json:"host"`
	ContainerID  string `json:"containerID"`
	PodName      string `json:"podName"`
	PodNamespace string `json:"podNamespace"`
	IfName       string `json:"ifName"`
	Network      string `json:"network"`
	PodUID       string `json:"podUID"`
	StartedAt    string `json:"startedAt"`
	Owner        string `json:"owner"`
}

// ReleaseAddressRequest is the body of DELETE /netservicecontroller/v1/allocator/ip/{address}.
type ReleaseAddressRequest struct {
	ContainerID string `json:"containerID"`
	Owner       string `json:"owner"`
}

// Allocation is the data of a successful POST. The fields of the first address are beside the request's; IPs has all
// addresses.
type Allocation struct {
	Host         string `json:"host"`
	ContainerID  string `json:"containerID"`
	PodName      string `json:"podName"`
	PodNamespace string `json:"podNamespace"`
	Owner        string `json:"owner,omitempty"`
	IfName       string `json:"ifName"`
	Address
	IPs []Address `json:"ips"`
	// Migration reports whether a virtual machine migrates live, so that another pod of it also has the addresses. A
	// plugin then neither probes for duplicates nor announces them.
	Migration bool `json:"migration,omitempty"`
}

// Address is one address with the data that a CNI plugin needs to set it up.
type Address struct {
	IPAddr  string `json:"ipAddr"`
	Gateway string `json:"gateway"`
	Mask    int    `json:"mask"`
	Pool    string `json:"pool"`
	VLAN    int    `json:"vlan"`
	// MacAddr is 02:02: followed by the four octets of an IPv4 address; empty for IPv6.
	MacAddr string  `json:"macAddr,omitempty"`
	MTU     int     `json:"mtu,omitempty"`
	Routes  []Route `json:"routes,omitempty"`
	DNS     *DNS    `json:"dns,omitempty"`
}

// Route is a route in the form of the CNI specification.
type Route struct {
	Dst string `json:"dst"`
	GW  string `json:"gw,omitempty"`
}

// DNS has DNS settings in the form of the CNI specification.
type DNS struct {
	Nameservers []string `json:"nameservers,omitempty"`
	Domain      string   `json:"domain,omitempty"`
	Search      []string `json:"search,omitempty"`
	Options     []string `json:"options,omitempty"`
}

// Release is the data of a successful DELETE.
type Release struct {
	Host         string `json:"host,omitempty"`
	ContainerID  string `json:"containerID,omitempty"`
	PodName      string `json:"podName,omitempty"`
	PodNamespace string `json:"podNamespace,omitempty"`
	Owner        string `json:"owner,omitempty"`
	// IPs are the addresses that this call released.
	IPs []string `json:"ips"`
}

// Lease is one address in the answers of the inspect routes.
type Lease struct {
	IPAddr       string `json:"ipAddr"`
	Status       string `json:"status"`
	Pool         string `json:"pool"`
	Mask         int    `json:"mask"`
	Gateway      string `json:"gateway"`
	Host         string `json:"host,omitempty"`
	ContainerID  string `json:"containerID,omitempty"`
	IfName       string `json:"ifName,omitempty"`
	PodName      string `json:"podName,omitempty"`
	PodNamespace string `json:"podNamespace,omitempty"`
	PodUID       string `json:"podUID,omitempty"`
	Owner        string `json:"owner,omitempty"`
	CNINetwork   string `json:"cniNetwork,omitempty"`
	UpdateTime   string `json:"updateTime,omitempty"`
	// Second is the other pod that has the address during the live migration of a virtual machine.
	Second *SecondAttachment `json:"secondAttachment,omitempty"`
	// Conflict is the last report that another machine answers for the address.
	Conflict *Conflict `json:"conflict,omitempty"`
}

// Conflict is a report that another machine answers for an address.
type Conflict struct {
	MAC        string `json:"mac"`
	ReportedAt string `json:"reportedAt"`
	// Outcome is Quarantined, Released or Kept.
	Outcome string `json:"outcome"`
	// Until is the end of the quarantine; empty without one.
	Until string `json:"until,omitempty"`
}

// SecondAttachment is a second pod of one virtual machine that has an address.
type SecondAttachment struct {
	Host        string `json:"host,omitempty"`
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName,omitempty"`
	PodName     string `json:"podName"`
	PodUID      string `json:"podUID,omitempty"`
	CNINetwork  string `json:"cniNetwork,omitempty"`
}

// LeaseList is the data of the inspect routes.
type LeaseList struct {
	Items []Lease `json:"items"`
	// Total is the number of all matches, including those beyond the page.
	Total int `json:"total"`
	// Continue is the query parameter for the next page; empty on the last.
	Continue string `json:"continue,omitempty"`
}
