// Ocicni calls CRI-O's CNI library as CRI-O does, for the pods that it reads from standard input.
//
//	echo '{"Pods": [{"Name": "web", "Namespace": "default", "ID": "3f4e", "UID": "9a", "NetNS": "/proc/7/ns/net"}]}' |
//		ocicni start DIR CACHE BIN
//
// DIR has the network configurations. The commands are those moments in which CRI-O uses the library: start checks the
// pods that it has and collects garbage, add and del set a sandbox up and take it down, status asks whether that can be
// done. Every call is a process with a library of its own, as CRI-O's is after a restart.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/cri-o/ocicni/pkg/ocicni"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 4 {
		return errors.New("want: ocicni start|add|del|status DIR CACHE BIN…")
	}
	var in struct{ Pods []*ocicni.PodNetwork }
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return fmt.Errorf("read the pods: %w", err)
	}
	library, err := ocicni.InitCNINoInotify("", args[1], args[2], args[3:]...)
	if err != nil {
		return err
	}
	all := []any{}
	var errs []error
	for _, pod := range in.Pods {
		var results []ocicni.NetResult
		switch args[0] {
		case "start":
			results, err = library.GetPodNetworkStatusWithContext(ctx, *pod)
		case "add":
			if results, err = library.SetUpPodWithContext(ctx, *pod); err == nil {
				// CRI-O asks for the addresses so, and calls CHECK with it.
				results, err = library.GetPodNetworkStatusWithContext(ctx, *pod)
			}
		case "del":
			err = library.TearDownPodWithContext(ctx, *pod)
		}
		errs = append(errs, err)
		for _, r := range results {
			all = append(all, r)
		}
	}
	switch args[0] {
	case "start":
		errs = append(errs, library.GC(ctx, in.Pods))
	case "status":
		errs = append(errs, library.StatusWithContext(ctx))
	}
	return errors.Join(append(errs, json.NewEncoder(os.Stdout).Encode(all))...)
}
