package node

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

// NewCommand returns the command line of bcsnet-node.
func NewCommand(version string) *cobra.Command {
	root := &cobra.Command{
		Use:   "bcsnet-node",
		Short: "Install bcsnet's CNI plugins on a node, and keep there what they need",
		Long: `bcsnet-node runs as a DaemonSet, on each node: install puts the CNI plugins, config.json, CA and token
and the conflist in their places, in an order in which no ADD fails, and keeps them there; uninstall removes them.`,
		Version: version, SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(newInstall(), newUninstall())
	return root
}

func newInstall() *cobra.Command {
	o := Options{Now: time.Now}
	c := &cobra.Command{
		Use:   "install",
		Short: "Install the plugins and follow the cluster until the pod ends",
		Long: `install copies the plugins, the CA, the token and config.json with the replicas of the allocator, asks
one of these, and writes the conflist last, by which the node becomes Ready; each file by a rename, and only where
it differs. Then it follows the EndpointSlices of the Service and the files that are mounted into the pod,
and repairs what others change. When the pod ends all stays, so that a roll of the DaemonSet fails no ADD.

It also delivers releases that the plugins could not deliver, writes the Node's condition BcsnetReady, and
serves metrics of the plugins' calls.`,
		Example: `  # as the DaemonSet of config/node does
  bcsnet-node install --node=node-1 --host=10.0.0.11 --conflist-file=/conflist/10-bcsnet.conflist \
    --ca-config-map=bcsnet-system/bcsnet-controller-ca --token-file=/token/token

  # where Multus names the networks of pods, and the controller's certificate is one of your own
  bcsnet-node install --node=node-1 --host=10.0.0.11 --ca-file=/ca/ca.crt --token-file=/token/token

  # k3s, with its directories
  bcsnet-node install --node=node-1 --host=10.0.0.11 --conflist-file=/conflist/10-bcsnet.conflist \
    --ca-config-map=bcsnet-system/bcsnet-controller-ca --token-file=/token/token \
    --bin-dir=/var/lib/rancher/k3s/data/cni --net-dir=/var/lib/rancher/k3s/agent/etc/cni/net.d`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.ValidateInstall() },
		RunE: func(c *cobra.Command, _ []string) error {
			o.LogOutput = c.ErrOrStderr()
			klog.SetSlogLogger(o.logger())
			return Run(c.Context(), o)
		},
	}
	o.addDirs(c.Flags())
	o.addInstall(c.Flags())
	return c
}

func newUninstall() *cobra.Command {
	o := Options{Now: time.Now}
	c := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the plugins from the node",
		Long: `uninstall removes nothing while pods of the node have addresses by the plugins, because they could not
end without them: drain the node. Then it withdraws the conflist, so that no pod begins by it, delivers
the releases that are left, and removes configuration and plugins. Releases that no replica takes stay
on the disk and are reported.

No pod of install may run on the node, because it would install all again: config/node-uninstall turns the
DaemonSet into one of uninstall.`,
		Example: `  # one node, by a Job that is placed there
  bcsnet-node uninstall --node=node-1

  # all nodes, by a DaemonSet that is deleted when all of its pods say that they are done
  bcsnet-node uninstall --node=node-1 --stay`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return o.Validate() },
		RunE: func(c *cobra.Command, _ []string) error {
			o.LogOutput = c.ErrOrStderr()
			ctx := c.Context()
			if !o.Stay {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, 2*time.Minute)
				defer stop()
			}
			return Uninstall(ctx, o)
		},
	}
	o.addDirs(c.Flags())
	o.addUninstall(c.Flags())
	return c
}
