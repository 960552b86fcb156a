// Package galaxyconfig keeps pools, on the leader, as the ConfigMap says that galaxy's users have
// (--floatingip-config). What the document comes to, package compat/galaxy/config decides.
package galaxyconfig
