// Package announce is the chained CNI plugin bcsnet-announce: it sets the MAC and MTU of an interface and announces its
// addresses to the network.
package announce
