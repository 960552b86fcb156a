package pool

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/view"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// parseQuotas parses quotas of the form NAMESPACE=N.
func parseQuotas(texts []string) (all []v1.NamespaceQuota, err error) {
	for _, text := range texts {
		namespace, number, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n < 0 || namespace == "" {
			return nil, app.Usagef("--quota %q is not NAMESPACE=N", text).
				WithHint("for example: --quota shop=20; 0 allows no address")
		}
		all = append(all, v1.NamespaceQuota{Namespace: namespace, Max: int32(n)})
	}
	return all, nil
}

// completeQuotas offers the namespaces, each followed by =.
func completeQuotas(s *app.App) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		all, directive := resource.CompleteNamespaces(s)(cmd, args, typed)
		for i := range all {
			all[i] += "="
		}
		return all, directive | cobra.ShellCompDirectiveNoSpace
	}
}

// quotas prints the use of each namespace with a quota.
func quotas(b *bytes.Buffer, all []ipam.NamespaceUse) error {
	return printer.Indented(b, "Quotas", printer.Table[ipam.NamespaceUse]{Headers: true,
		Columns: []printer.Column[ipam.NamespaceUse]{
			{Name: "NAMESPACE", Cell: func(u ipam.NamespaceUse) string { return u.Namespace }},
			{Name: "HAS", Cell: func(u ipam.NamespaceUse) string { return strconv.Itoa(u.Has) }},
			{Name: "QUOTA", Cell: func(u ipam.NamespaceUse) string { return strconv.Itoa(u.Quota) }},
			{Name: "STATE", Cell: view.QuotaState},
		}}, all)
}
