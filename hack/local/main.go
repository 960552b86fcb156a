// Local runs one control plane with the controller in the background, for trying things out:
//
//	go run ./hack/local up|down|status
//
// `make up` and `make down` call it. Everything it keeps is in .local/ of the module: env to source, kubeconfig, logs/
// and data/. With -nodes the cluster has real nodes in place of those of kwok: `make node-up` and `make node-down` call
// it for .local/node.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

const usage = `usage: local up|down|status|kill|start [flags] [NODE]

  up      start a control plane and the controller, and return when they are ready
  down    stop them and remove their files
  status  say what runs; exit code 1 when something does not
  kill    end a real node as a power cut would
  start   start a real node again

flags:
`

// options are the same for all verbs, so that they are passed on to the supervisor unchanged.
type options struct {
	verb         string
	dir          string // absolute
	controller   string // absolute
	noController bool
	nodes        int    // real ones
	node         string // that kill and start are about
}

// maxNodes bounds real nodes: each takes 135 MB and the time of a processor.
const maxNodes = 9

func main() {
	runNode()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "✗", err)
		}
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	verbs := map[string]func(context.Context, options) error{
		"up": up, "down": down, "status": status, superviseVerb: supervise, killVerb: steer, startVerb: steer,
	}
	var verb string
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	o, err := parse(verb, args)
	if err != nil {
		return err
	}
	do, ok := verbs[verb]
	if !ok {
		return fmt.Errorf("no verb %q; hint: up, down, status, kill or start", verb)
	}
	o.verb = verb
	return do(ctx, o)
}

func parse(verb string, args []string) (o options, err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return o, err
	}
	flags := flag.NewFlagSet(verb, flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", filepath.Join(root, ".local"), "`directory` that holds everything")
	flags.StringVar(&o.controller, "controller", filepath.Join(root, "bin", "bcsnet-controller"),
		"the controller's `binary`")
	flags.BoolVar(&o.noController, "no-controller", false,
		"run only the control plane; you start the controller yourself")
	flags.IntVar(&o.nodes, "nodes", 0, "how `many` real nodes the cluster has; 0 for nodes of kwok")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if names := flags.Args(); verb == killVerb || verb == startVerb {
		if len(names) != 1 {
			return o, fmt.Errorf("%s takes the name of a node, such as n1, not %q", verb, names)
		}
		o.node = names[0]
	} else if len(names) > 0 {
		return o, fmt.Errorf("%s takes flags only, not %q", verb, names)
	}
	if o.nodes < 0 || o.nodes > maxNodes {
		return o, fmt.Errorf("-nodes %d: from 0 to %d will do", o.nodes, maxNodes)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return o, err
	}
	o.controller, err = filepath.Abs(o.controller)
	return o, err
}

// args returns the flags that parse turns into o.
func (o options) args() []string {
	return []string{"-dir", o.dir, "-controller", o.controller, fmt.Sprintf("-no-controller=%t", o.noController),
		fmt.Sprintf("-nodes=%d", o.nodes)}
}
