//go:build faults

package gone

import "os"

// The fault suite (test/faults) builds the controller with this file in place of failpoint_off.go. FAULTS_BREAK in the
// environment names what is broken. With look, one look is enough. With live, the cache is believed. With host, nobody
// asks for the host. collect is look and live at once.
//
//nolint:gochecknoglobals // what a process is born with
var (
	broken       = os.Getenv("FAULTS_BREAK")
	looksTwice   = broken != "look" && broken != "collect"
	readsLive    = broken != "live" && broken != "collect"
	asksHost     = broken != "host"
	sparesStatic = broken != "static"
)
