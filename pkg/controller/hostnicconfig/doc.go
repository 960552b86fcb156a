// Package hostnicconfig gives namespaces blocks, on the leader, by a ConfigMap in hostnic's format
// (--hostnic-ipam-config). Package compat/hostnic parses it.
package hostnicconfig
