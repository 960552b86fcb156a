// Package link finds the interface of a container in its network namespace, and waits until it can carry frames.
package link
