// Package hostnic reads hostnic's hostnic-ipam-config: which namespace draws from which blocks, and in which order. It
// knows no cluster: package controller/hostnicconfig makes the blocks.
package hostnic
