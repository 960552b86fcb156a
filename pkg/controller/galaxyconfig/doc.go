// Package galaxyconfig maintains pools, on the leader, by a ConfigMap in galaxy's format (--floatingip-config). Package
// compat/galaxy/config decides which pools a document requests.
package galaxyconfig
