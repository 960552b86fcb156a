package cli

import (
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dryRun says how far a change goes: to the end, to the API server that checks it and stores nothing,
// or not even there. "--dry-run server" is the value server, unlike kubectl's, which takes "server" as an argument;
// bareDryRun adds a value that is left out.
type dryRun string

const (
	dryRunNone   dryRun = "none"
	dryRunClient dryRun = "client"
	dryRunServer dryRun = "server"
)

// String is the flag's value.
func (d *dryRun) String() string { return string(*d) }

// Set takes the flag's value.
func (d *dryRun) Set(v string) error {
	switch dryRun(v) {
	case dryRunNone, dryRunClient, dryRunServer:
		*d = dryRun(v)
		return nil
	}
	return usagef("it is none, client or server")
}

// Type is shown in the help.
func (d *dryRun) Type() string { return "STRATEGY" }

func (d *dryRun) addTo(cmd *cobra.Command) {
	*d = dryRunNone
	cmd.Flags().Var(d, "dry-run", "none; client: only say what would change; server: have the API server check it, too")
	complete(cmd, "dry-run", string(dryRunNone), string(dryRunClient), string(dryRunServer))
}

// options are the values for requests of the API.
func (d *dryRun) options() []string {
	if *d == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (d *dryRun) suffix() string {
	if *d == dryRunClient || *d == dryRunServer {
		return " (" + string(*d) + " dry run)"
	}
	return ""
}
