// Package neighbour speaks ARP and IPv6 neighbour discovery on one link: it asks who has an address, and announces who
// has it now.
package neighbour
