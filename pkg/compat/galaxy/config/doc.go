// Package config reads galaxy's floatingip-config and decides which pools result from it. It does not access the
// cluster: package controller/galaxyconfig maintains the pools.
package config
