// Package nodefile writes the files that calls of the CNI plugins leave on a node for each other: there is all of a
// file or nothing of it, whatever dies meanwhile.
package nodefile
