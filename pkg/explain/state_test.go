package explain

import (
	"testing"
	"time"
)

func TestFormatSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "1s", time.Second: "1s", 1500 * time.Millisecond: "2s", 12 * time.Second: "12s", time.Minute: "1m",
		90 * time.Second: "1m30s", 10 * time.Minute: "10m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		3601 * time.Second: "1h0m1s", 720 * time.Hour: "720h",
	} {
		if got := FormatSpan(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}
