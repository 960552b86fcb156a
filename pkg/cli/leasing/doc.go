// Package leasing changes leases from the command line as a controller does: it runs an allocator in this process,
// releases addresses, and sets them aside. It prints the changes and knows no command.
package leasing
