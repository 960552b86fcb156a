// Package nodefile writes the files that calls of the CNI plugins leave on a node for each other: a file is always
// complete or absent, whatever crashes meanwhile.
package nodefile
