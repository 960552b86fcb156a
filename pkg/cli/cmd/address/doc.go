// Package address has the commands ip and lease, which show, allocate, reserve and release single addresses. It imports
// no other command.
package address
