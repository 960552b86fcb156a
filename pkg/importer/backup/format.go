package backup

import (
	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// Format is the newest format that this release reads, and the one that it writes.
const Format = 1

// maxLine bounds a line, in bytes. An object of the API server is smaller than 2 MiB.
const maxLine = 4 << 20

// The kinds of the lines.
const (
	kindBegin   = "Backup"
	kindEnd     = "End"
	kindPool    = "BCSNetPool"
	kindClaim   = "BCSNetIPClaim"
	kindAddress = "BCSNetIP"
)

// begin is the first line.
type begin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Format     int    `json:"format"`
}

// end is the last line.
type end struct {
	Kind      string `json:"kind"`
	Pools     int    `json:"pools"`
	Claims    int    `json:"claims"`
	Addresses int    `json:"addresses"`
	SHA256    string `json:"sha256"`
}

// Counts has the numbers of objects in a backup.
type Counts struct{ Pools, Claims, Addresses int }

// add counts an object of a kind; ok is false for a kind that no backup of this release has.
func (c *Counts) add(kind string) (ok bool) {
	switch kind {
	case kindPool:
		c.Pools++
	case kindClaim:
		c.Claims++
	case kindAddress:
		c.Addresses++
	default:
		return false
	}
	return true
}

func first() begin {
	return begin{APIVersion: v1.GroupVersion.String(), Kind: kindBegin, Format: Format}
}
