// bcsnet-announce is a chained CNI plugin: it sets MAC and MTU of a pod's interface and announces its addresses.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/bcsnet/bcsnet/pkg/cni/announce"
	"github.com/bcsnet/bcsnet/pkg/cni/ipam"
)

// version is set by the linker.
var version = "dev"

// repeat is the argument of a process that goes on announcing. A runtime gives a plugin no argument.
const repeat = "repeat"

func main() {
	if slices.Equal(os.Args[1:], []string{repeat}) {
		announce.Repeat(os.Stdin)
		return
	}
	asks := ipam.New(os.Stdout, os.Stderr)
	attachments, err := asks.Attachments()
	if err != nil { // the ADD before this one has failed for it; a DEL is done all the same
		fmt.Fprintf(os.Stderr, "bcsnet-announce: %v\n", err)
	}
	plugin := &announce.Plugin{
		Attachments: attachments, Places: attachments.Beside("repeaters"), Stdout: os.Stdout, Stderr: os.Stderr,
		Repeater: []string{"/proc/self/exe", repeat}, Collect: asks.Collect, Contest: asks.Contest,
	}
	skel.PluginMainFuncs(plugin.Funcs(), announce.Versions(), "CNI plugin bcsnet-announce "+version)
}
