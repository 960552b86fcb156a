// bcsnet-announce is a chained CNI plugin: it sets MAC and MTU of a pod's interface and announces its addresses.
package main

import (
	"os"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/bcsnet/bcsnet/pkg/cni/announce"
	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/ipam"
)

// version is set by the linker.
var version = "dev"

func main() {
	plugin := &announce.Plugin{
		Attachments: attach.DefaultDir, Stdout: os.Stdout, Stderr: os.Stderr,
		Collect: ipam.New(os.Stdout, os.Stderr).Collect,
	}
	skel.PluginMainFuncs(plugin.Funcs(), announce.Versions(), "CNI plugin bcsnet-announce "+version)
}
