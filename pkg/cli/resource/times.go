package resource

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/store"
)

// UntilText formats the time until which a claim keeps an address. It returns an invalid time unchanged.
func UntilText(stored string) string {
	t, err := time.Parse(time.RFC3339Nano, stored)
	if err != nil {
		return stored
	}
	return TimeText(t)
}

// TimeText formats a time for tables: UTC, to the second.
func TimeText(t time.Time) string { return store.FormatTime(t.Truncate(time.Second)) }
