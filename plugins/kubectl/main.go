// kubectl-bcsnet is bcsnetctl as a kubectl plugin: kubectl bcsnet …
package main

import (
	"os"

	"github.com/bcsnet/bcsnet/pkg/cli"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(cli.Main(os.Args, version)) }
