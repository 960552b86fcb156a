// bcsnetctl manages address pools, hosts and leases.
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(cli.Main(os.Args, version, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
