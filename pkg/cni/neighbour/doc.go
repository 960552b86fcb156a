// Package neighbour speaks ARP and IPv6 neighbour discovery on one link: it asks which machine has an address, and
// announces the current one.
package neighbour
