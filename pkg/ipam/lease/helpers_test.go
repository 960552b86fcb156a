package lease

import (
	"net/netip"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const host1 = "192.168.0.1"

// now is the time of tests; at is so many seconds later.
var now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func at(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// equal compares what go-cmp cannot look into.
var equal = cmp.Options{cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})}
