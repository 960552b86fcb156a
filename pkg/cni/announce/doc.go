// Package announce is the chained CNI plugin bcsnet-announce: it gives an interface the MAC and MTU that go with its
// address, and makes the network write down where the address is now.
package announce
