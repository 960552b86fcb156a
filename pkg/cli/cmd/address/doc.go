// Package address has the commands ip and lease: single addresses, who has them, taking them and giving them back. It
// imports no other command.
package address
