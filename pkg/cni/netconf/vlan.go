package netconf

import (
	"strconv"
	"strings"
)

// maxVLAN is the highest VLAN ID of IEEE 802.1Q.
const maxVLAN = 4094

// VLAN is the VLAN that the main plugin's configuration names.
type VLAN struct {
	// ID is the value of the field vlan (bridge, SR-IOV) or vlanId (vlan); 0 without one.
	ID int
	// Field is the name of the field; empty without one.
	Field string
	// Master is the link below the interface, which may be a VLAN link; empty without one.
	Master string
}

// parseVLAN parses the VLAN fields of main plugins.
func parseVLAN(top object) (v VLAN) {
	v.Master = read[string](top, "master")
	for _, name := range []string{"vlan", "vlanId"} {
		id := read[int](top, name)
		switch {
		case id < 0 || id > maxVLAN:
			top.problems.add(name, "%d is not in 0-%d", id, maxVLAN)
		case id != 0 && v.ID != 0 && v.ID != id:
			top.problems.add(name, "it is %d, and %s is %d", id, v.Field, v.ID)
		case id != 0:
			v.ID, v.Field = id, name
		}
	}
	return v
}

// VLANOfName returns the VLAN in the name of a link, as in eth0.100; 0 if the name has none.
func VLANOfName(link string) int {
	dot := strings.LastIndexByte(link, '.')
	if dot <= 0 {
		return 0
	}
	id, err := strconv.ParseUint(link[dot+1:], 10, 16)
	if err != nil || id > maxVLAN {
		return 0
	}
	return int(id)
}
