// Package nodefile writes the files that calls of the CNI plugins leave on a node for each other. A file is always
// complete or absent, even after a crash.
package nodefile
