// Package hostnicconfig gives namespaces blocks, on the leader, as a ConfigMap in hostnic's format says
// (--hostnic-ipam-config). Package compat/hostnic parses it.
package hostnicconfig
