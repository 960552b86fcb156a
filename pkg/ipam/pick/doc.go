// Package pick chooses the addresses of a request, or says why there are none. It tries in this order: the addresses
// that the request names, those kept for its claim, those that its own interface had last, and the first free address
// of the pools that fit. No host, namespace or claim gets more addresses than its bound. A picker changes nothing
// except cooldowns that have ended. It has no lock: its callers hold the lock of the index.
package pick
