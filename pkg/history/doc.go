// Package history decides what of the changes of addresses and pools is worth a record, and packs records into the
// parts that BCSNetHistory objects hold. It reads nothing and writes nothing.
//
// A record of an address is written when somebody has lost it: it says since when they had it, so that one record is
// enough for a whole holding. Who has an address now is in its own object.
package history
