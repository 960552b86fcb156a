// Package config reads galaxy's floatingip-config and says which pools it comes to. It knows no cluster: who
// keeps the pools is package controller.
package config
