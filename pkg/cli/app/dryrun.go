package app

import (
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DryRun says how far a change goes: to the end, to the API server that checks it and stores nothing,
// or not even there. "--dry-run server" is the value server, unlike kubectl's, which takes "server" as an argument;
// package cli adds a value that is left out.
type DryRun string

// Values of --dry-run.
const (
	DryRunNone   DryRun = "none"
	DryRunClient DryRun = "client"
	DryRunServer DryRun = "server"
)

// String returns the flag's value.
func (d *DryRun) String() string { return string(*d) }

// Set takes the flag's value.
func (d *DryRun) Set(v string) error {
	switch DryRun(v) {
	case DryRunNone, DryRunClient, DryRunServer:
		*d = DryRun(v)
		return nil
	}
	return Usagef("it is none, client or server")
}

// Type returns the placeholder that the help shows for the flag's value.
func (d *DryRun) Type() string { return "STRATEGY" }

// AddTo adds the flag --dry-run to a command.
func (d *DryRun) AddTo(cmd *cobra.Command) {
	*d = DryRunNone
	cmd.Flags().Var(d, "dry-run", "none; client: only say what would change; server: have the API server check it, too")
	Complete(cmd, "dry-run", string(DryRunNone), string(DryRunClient), string(DryRunServer))
}

// Options returns the values of dryRun for requests to the API server.
func (d *DryRun) Options() []string {
	if *d == DryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

func (d *DryRun) suffix() string {
	if *d == DryRunClient || *d == DryRunServer {
		return " (" + string(*d) + " dry run)"
	}
	return ""
}
