package resource

import (
	"time"

	"github.com/bcsnet/bcsnet/pkg/store"
)

// UntilText formats the time until which a claim keeps an address. A time that cannot be read stays as it is.
func UntilText(stored string) string {
	t, err := time.Parse(time.RFC3339Nano, stored)
	if err != nil {
		return stored
	}
	return TimeText(t)
}

// TimeText formats a time as tables show it: UTC, to the second.
func TimeText(t time.Time) string { return store.FormatTime(t.Truncate(time.Second)) }
