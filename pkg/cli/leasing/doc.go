// Package leasing changes leases from the command line as a controller does: it runs an allocator in this process,
// gives addresses back, and sets them aside. It prints what was changed and knows no command.
package leasing
