// bcsnet-ipam is a CNI plugin that gives pods addresses of bcsnet's pools, on behalf of a main plugin such as bridge.
package main

import (
	"context"
	"log"
	"os"
	"runtime"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/bcsnet/bcsnet/pkg/cni/ipam"
)

// version is set by the linker.
var version = "dev"

func main() {
	runtime.GOMAXPROCS(1) // the steps of a call follow each other: further threads would look for work in vain
	grow()
	plugin := ipam.New(os.Stdout, os.Stderr)
	if len(os.Args) > 1 && os.Args[1] == "drain" {
		os.Exit(plugin.Drain(context.Background(), os.Args[2:]))
	}
	stdin, err := ipam.Stdin(os.Getenv("CNI_COMMAND"), os.Stdin)
	if err != nil {
		log.Fatal("bcsnet-ipam: ", err)
	}
	os.Stdin = stdin
	skel.PluginMainFuncs(plugin.Funcs(), ipam.Versions(), "CNI plugin bcsnet-ipam "+version)
}

// grow grows the stack at once to what a TLS handshake needs. Growing it in the handshake copies all frames, several
// times.
//
//go:noinline
func grow() byte {
	var room [28 << 10]byte
	return room[len(os.Args)%len(room)]
}
