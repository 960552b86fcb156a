// Package config reads galaxy's floatingip-config and decides which pools it comes to. It knows no cluster: package
// controller/galaxyconfig keeps the pools.
package config
