// Package config reads galaxy's floatingip-config and decides which pools it comes to. It does not access the cluster:
// package controller/galaxyconfig maintains the pools.
package config
