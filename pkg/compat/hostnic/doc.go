// Package hostnic reads hostnic's hostnic-ipam-config: which namespace draws from which blocks, and in which order. It
// does not access the cluster: package controller/hostnicconfig creates the blocks.
package hostnic
