package controller

import (
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// NewCommand returns the command line of bcsnet-controller.
func NewCommand(version string) *cobra.Command {
	o := Options{Version: version, PodIP: os.Getenv(PodIPEnv)}
	c := &cobra.Command{
		Use:   "bcsnet-controller",
		Short: "Keep BCSNetPool and BCSNetIP objects and answer CNI plugins over HTTP",
		Long: `bcsnet-controller watches BCSNetPool objects, keeps one BCSNetIP object per address, and serves the
allocator HTTP API that CNI plugins call. Every flag can also be set in the environment: --log-level is
BCSNET_LOG_LEVEL.`,
		Example: `  # against the cluster of the current kubeconfig, without a leader election
  bcsnet-controller --leader-elect=false`,
		Version: version, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		PreRunE: func(c *cobra.Command, _ []string) error {
			if err := SetFromEnv(c.Flags(), os.LookupEnv); err != nil {
				return err
			}
			return o.Validate()
		},
		RunE: func(c *cobra.Command, _ []string) error {
			log := logr.FromSlogHandler(o.Logger().Handler())
			for _, name := range UnknownEnv(c.Flags(), os.Environ()) {
				o.Logger().Warn("no flag has the name of a variable of the environment", "variable", name, "hint",
					"bcsnet-controller --help")
			}
			ctrl.SetLogger(log)
			klog.SetLogger(log)
			return Run(c.Context(), o)
		},
	}
	o.AddFlags(c.Flags())
	return c
}
