package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// completeClaimNames offers the claims of all namespaces, as addresses call them.
func completeClaimNames(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			api, err := newClaims(s)
			if err != nil {
				return nil, err
			}
			all, err := api.list(ctx, "", metav1.ListOptions{})
			var out []string
			for _, c := range all {
				out = append(out, cobra.CompletionWithDesc(c.name(), ownerText(c.BCSNetIPClaim)))
			}
			return out, err
		})
	}
}

// completeClaims offers the claims of the namespace that are not named yet, most at most of them; 0 is for any number.
func completeClaims(s *app.App, in *inNamespace, most int) app.Completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.Offer(cmd, func(ctx context.Context) ([]string, error) {
			api, err := newClaims(s)
			if err != nil {
				return nil, err
			}
			if err := in.complete(s); err != nil {
				return nil, err
			}
			all, err := api.list(ctx, in.name, metav1.ListOptions{})
			var out []string
			for _, c := range all {
				if !slices.Contains(args, c.Name) {
					out = append(out, cobra.CompletionWithDesc(c.Name, ownerText(c.BCSNetIPClaim)))
				}
			}
			return out, err
		})
	}
}
