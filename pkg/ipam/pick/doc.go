// Package pick chooses the addresses of a request, or says why there are none: what was asked for by name, what is kept
// for its claim, what its own interface had last, and then the first free address of the pools that fit. No host,
// namespace or claim gets an address above its bound. A picker changes nothing but what has expired, and has no lock:
// the index holds its lock around every call.
package pick
