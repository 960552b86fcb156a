// Package block cuts the addresses of a pool into blocks of one size, names them, and keeps which exist, who owns them
// and who has addresses in them. Which block serves a namespace is decided in namespace.go. The number of a block never
// changes while the grid is the same. Nothing here has a lock: the index has one around it.
package block
