package app

import (
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DryRun says how much of a change is carried out: none means all of it, server has the API server check it without
// storing it, client sends nothing. "--dry-run server" sets the value server; kubectl takes that "server" as an
// argument. Package cli supplies the value if it is omitted.
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
