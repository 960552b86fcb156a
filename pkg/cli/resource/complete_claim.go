package resource

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// completeClaimNames offers the claims of all namespaces as NAMESPACE/NAME.
func completeClaimNames(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			api, err := NewClaims(s)
			if err != nil {
				return nil, err
			}
			all, err := api.List(ctx, "", metav1.ListOptions{})
			var out []string
			for _, c := range all {
				out = append(out, cobra.CompletionWithDesc(c.FullName(), OwnerText(c.BCSNetIPClaim)))
			}
			return out, err
		})
	}
}

// CompleteClaims offers the claims of the namespace that are not named yet, for up to most arguments; 0 means any
// number.
func CompleteClaims(s *app.App, in *InNamespace, most int) app.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			api, err := NewClaims(s)
			if err != nil {
				return nil, err
			}
			if err := in.Complete(s); err != nil {
				return nil, err
			}
			all, err := api.List(ctx, in.Name, metav1.ListOptions{})
			var out []string
			for _, c := range all {
				if !slices.Contains(args, c.Name) {
					out = append(out, cobra.CompletionWithDesc(c.Name, OwnerText(c.BCSNetIPClaim)))
				}
			}
			return out, err
		})
	}
}
