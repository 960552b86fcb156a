// Package history decides which changes of addresses and pools are recorded, and packs the records into the parts of
// BCSNetHistory objects. It reads nothing and writes nothing.
//
// A record of an address is written when somebody has lost it: it says since when they had it, so that one record is
// enough for a whole holding. Who has an address now is in its own object.
package history
