package wire

// MaxAttachments is how many attachments one garbage collection may name.
const MaxAttachments = 12288

// Attachment is one interface of one container.
type Attachment struct {
	ContainerID string `json:"containerID"`
	// IfName is the interface; eth0 when empty.
	IfName string `json:"ifName"`
}

// GCRequest is the body of POST /netservicecontroller/v1/allocator/gc: the attachments that a runtime still has of one
// network on a host. Every field is required.
type GCRequest struct {
	Host string `json:"host"`
	// CNINetwork is the name of the conflist that the list is of.
	CNINetwork string `json:"cniNetwork"`
	// StartedAt is when the plugin began, RFC 3339: what was asked for since stays. So does what was bound less than
	// five minutes ago, by the API server's time: the list may have been made while its pod was set up.
	StartedAt string `json:"startedAt"`
	// Attachments are those that stay. A network without any sends an empty list: a missing one, and null, are refused.
	// Pods that are there keep their addresses, listed or not.
	Attachments []Attachment `json:"attachments"`
}

// GCResult is the data of a successful garbage collection.
type GCResult struct {
	Host       string `json:"host"`
	CNINetwork string `json:"cniNetwork"`
	// IPs are the addresses that this call released.
	IPs []string `json:"ips"`
	// Kept are the attachments that the network has and the list lacks; missing from a replica of an earlier release.
	Kept []Attachment `json:"kept"`
}

// ConflictRequest is the body of POST /netservicecontroller/v1/allocator/ip/{address}/conflict: the container that
// was just given the address found that somebody else answers for it.
type ConflictRequest struct {
	ContainerID string `json:"containerID"`
	// IfName is the interface; eth0 when empty.
	IfName string `json:"ifName"`
	// MAC is the hardware address that answered: six octets, separated by colons or hyphens.
	MAC string `json:"mac"`
}

// ConflictResult is the data of a conflict report by which the container lost the address: the same ADD may take
// another. An address that is kept by a claim, or was asked for by name, stays with the container; the report is then
// refused with the reason AddressConflict.
type ConflictResult struct {
	IPAddr string `json:"ipAddr"`
	Pool   string `json:"pool"`
	// MAC is the one that answered, in lower case with colons.
	MAC string `json:"mac"`
	// Quarantined: nobody gets the address before Until. Where it is false, a brake held the quarantine back and the
	// address is free: it looks as if somebody answered for every address.
	Quarantined bool `json:"quarantined"`
	// Until is when the quarantine ends, RFC 3339; empty without one.
	Until string `json:"until,omitempty"`
}
