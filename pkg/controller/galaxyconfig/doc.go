// Package galaxyconfig keeps pools, on the leader, in line with a ConfigMap in galaxy's format (--floatingip-config).
// Package compat/galaxy/config decides which pools a document requests.
package galaxyconfig
