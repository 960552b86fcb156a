//go:build faults

package gone

import "os"

// The fault suite (test/faults) builds the controller with this file in place of sound.go. With FAULTS_BREAK=look in
// the environment one look is enough, with live the word of a cache, and with host nobody asks for the host. collect is
// look and live at once.
//
//nolint:gochecknoglobals // what a process is born with
var (
	broken       = os.Getenv("FAULTS_BREAK")
	looksTwice   = broken != "look" && broken != "collect"
	readsLive    = broken != "live" && broken != "collect"
	asksHost     = broken != "host"
	sparesStatic = broken != "static"
)
