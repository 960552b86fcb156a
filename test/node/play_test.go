//go:build linux

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/containernetworking/plugins/pkg/ns"
)

const (
	// playMeta is the name by which the test binary is a CNI plugin, which gives a pod several interfaces.
	playMeta = "test-meta"
	// playGC is set where the test binary has libcni collect the garbage of a network, as a runtime does.
	playGC = "NODE_TEST_GC"
)

// play has the test binary do on a node what it was called there for, and does not return then.
func play() {
	var err error
	switch {
	case filepath.Base(os.Args[0]) == playMeta:
		skel.PluginMainFuncs(skel.CNIFuncs{
			Add: addAll, Del: delAll,
			Check:  func(*skel.CmdArgs) error { return nil },
			GC:     func(*skel.CmdArgs) error { return nil },
			Status: func(*skel.CmdArgs) error { return nil },
		}, version.All, "a meta plugin for tests")
	case os.Getenv(playGC) != "":
		err = collect(os.Getenv(playGC))
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// conflist reads the conflist of a network of the node.
func conflist(network string) (*libcni.NetworkConfigList, error) {
	return libcni.ConfListFromFile(filepath.Join("/etc/cni", network+".d", "10-test.conflist"))
}

// each calls a function for each network of the meta plugin's configuration, with the interface that is of it: eth0,
// net1 and so on.
func each(args *skel.CmdArgs, do func(*libcni.CNIConfig, *libcni.NetworkConfigList, *libcni.RuntimeConf) error) error {
	var conf struct {
		Networks []string `json:"networks"`
	}
	if err := json.Unmarshal(args.StdinData, &conf); err != nil {
		return err
	}
	cni := libcni.NewCNIConfigWithCacheDir(filepath.SplitList(args.Path), "/run/test-meta", nil)
	var pod [][2]string
	for arg := range strings.SplitSeq(args.Args, ";") {
		if key, value, ok := strings.Cut(arg, "="); ok {
			pod = append(pod, [2]string{key, value})
		}
	}
	var errs []error
	for i, network := range conf.Networks {
		list, err := conflist(network)
		if err != nil {
			return err
		}
		name := args.IfName
		if i > 0 {
			name = fmt.Sprintf("net%d", i)
		}
		errs = append(errs, do(cni, list, &libcni.RuntimeConf{
			ContainerID: args.ContainerID, NetNS: args.Netns, IfName: name, Args: pod,
		}))
	}
	return errors.Join(errs...)
}

// addAll answers an ADD with the result of the first network.
func addAll(args *skel.CmdArgs) error {
	// Both are on one network, where Linux would answer for each of its addresses by all interfaces, like two stations.
	err := ns.WithNetNSPath(args.Netns, func(ns.NetNS) error {
		return os.WriteFile("/proc/sys/net/ipv4/conf/all/arp_ignore", []byte("1"), 0o644)
	})
	if err != nil {
		return err
	}
	var first types.Result
	err = each(args, func(cni *libcni.CNIConfig, list *libcni.NetworkConfigList, rt *libcni.RuntimeConf) error {
		result, err := cni.AddNetworkList(context.Background(), list, rt)
		if first == nil {
			first = result
		}
		return err
	})
	if err != nil {
		return err
	}
	return types.PrintResult(first, "1.1.0")
}

func delAll(args *skel.CmdArgs) error {
	return each(args, func(cni *libcni.CNIConfig, list *libcni.NetworkConfigList, rt *libcni.RuntimeConf) error {
		return cni.DelNetworkList(context.Background(), list, rt)
	})
}

// collect has libcni collect the garbage of a network: all but the attachments that standard input lists.
func collect(network string) error {
	list, err := conflist(network)
	if err != nil {
		return err
	}
	var valid []types.GCAttachment
	if err := json.NewDecoder(os.Stdin).Decode(&valid); err != nil {
		return err
	}
	// The cache of the runtime itself, so that its containers are known.
	cni := libcni.NewCNIConfig([]string{"/opt/cni/bin"}, nil)
	return cni.GCNetworkList(context.Background(), list, &libcni.GCArgs{ValidAttachments: valid})
}
