package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// completeClaimNames offers the claims of all namespaces, as addresses call them.
func (s *session) completeClaimNames(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return s.offer(cmd, func(ctx context.Context) ([]string, error) {
		api, err := s.claims()
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

// completeClaims offers the claims of the namespace that are not named yet, most at most of them; 0 is for any number.
func (s *session) completeClaims(in *inNamespace, most int) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return s.offer(cmd, func(ctx context.Context) ([]string, error) {
			api, err := s.claims()
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
