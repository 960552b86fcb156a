package wire

// MaxAttachments bounds the attachments in one garbage collection.
const MaxAttachments = 12288

// Attachment is one interface of one container.
type Attachment struct {
	ContainerID string `json:"containerID"`
	// IfName is the interface; eth0 if empty.
	IfName string `json:"ifName"`
}

// GCRequest is the body of POST /netservicecontroller/v1/allocator/gc: the attachments that a runtime still has in one
// network on a host. Every field is required.
type GCRequest struct {
	Host string `json:"host"`
	// CNINetwork is the name of the conflist to which the list belongs.
	CNINetwork string `json:"cniNetwork"`
	// StartedAt is the time at which the plugin began, RFC 3339: leases that were requested later stay. So do leases
	// that were bound less than five minutes ago, by the API server's time: the list may have been made while their
	// pods were set up.
	StartedAt string `json:"startedAt"`
	// Attachments are the attachments that stay. For none, a runtime sends an empty list: a missing one, and null, are
	// refused. Existing pods keep their addresses, listed or not.
	Attachments []Attachment `json:"attachments"`
}

// GCResult is the data of a successful garbage collection.
type GCResult struct {
	Host       string `json:"host"`
	CNINetwork string `json:"cniNetwork"`
	// IPs are the addresses that this call released.
	IPs []string `json:"ips"`
	// Kept are the network's attachments that the list lacks; missing in the answer of an earlier release.
	Kept []Attachment `json:"kept"`
}

// ConflictRequest is the body of POST /netservicecontroller/v1/allocator/ip/{address}/conflict: the container that was
// just given the address found that another machine answers for it.
type ConflictRequest struct {
	ContainerID string `json:"containerID"`
	// IfName is the interface; eth0 if empty.
	IfName string `json:"ifName"`
	// MAC is the hardware address that answered: six octets, separated by colons or hyphens.
	MAC string `json:"mac"`
}

// ConflictResult is the data of a conflict report after which the container lost the address: the same ADD may take
// another. An address that is kept by a claim, or was requested by name, stays with the container; the report is then
// refused with the reason AddressConflict.
type ConflictResult struct {
	IPAddr string `json:"ipAddr"`
	Pool   string `json:"pool"`
	// MAC is the hardware address that answered, in lower case with colons.
	MAC string `json:"mac"`
	// Quarantined reports whether nobody gets the address before Until. If it is false, a brake prevented the
	// quarantine and the address is free: one machine seems to answer for every address.
	Quarantined bool `json:"quarantined"`
	// Until is the end of the quarantine, RFC 3339; empty without one.
	Until string `json:"until,omitempty"`
}
