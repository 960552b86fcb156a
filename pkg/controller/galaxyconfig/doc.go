// Package galaxyconfig keeps pools, on the leader, as a ConfigMap in galaxy's format asks for (--floatingip-config).
// Package compat/galaxy/config decides which pools a document requests.
package galaxyconfig
