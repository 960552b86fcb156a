// Package export is the command export, which writes prefixes, ranges and addresses as the network team's system reads
// them: NetBox's tables for bulk import. It imports no other command.
package export
