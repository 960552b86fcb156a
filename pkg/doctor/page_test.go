package doctor_test

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/doctor"
	"github.com/bcsnet/bcsnet/test/generated"
)

var update = flag.Bool("update", false, "write the page of the checks")

// TestPage: the reference has every check as it is.
func TestPage(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "reference", "doctor.md")
	generated.UpToDate(t, *update, file, "go generate ./pkg/doctor", func(string) (string, error) { return page(), nil })
}

func page() string {
	var b bytes.Buffer
	b.WriteString(`# Checks of doctor

<!-- Generated from doctor.Checks by go generate ./pkg/doctor; do not edit. -->

After this page you know what each check of ` + "`bcsnetctl doctor`" + ` finds, and how to resolve it. The command reads the
cluster once and changes nothing without ` + "`--fix`" + `. ` + "`--only` and `--skip`" + ` choose checks by id or group, which are
stable. It exits with 3 if there is a finding of severity *error*, else with 0: an error is something that does not work, or an
address that is lost or used twice.

The leader runs the same checks every few minutes, except for the group *install* and the check of the Service
network, and publishes their counts: ` + "`bcsnet_doctor_findings{check,severity}`" + `.

Leases and pods that changed within the last minute are skipped, because the status of a pod follows its addresses by seconds. Leases of
owners are never leaks. The API server does not show whether a lease's container still exists; only the node's CNI plugin knows.

` + "`--fix`" + ` only releases what the group *leaks* finds. It reads each address and its pod again from the API
server, and writes with the version that it has read. It skips addresses on a host that is not a Ready node, because their
containers may still run. If the machine is off: ` + "`bcsnetctl release-host HOST`" + `.

If the user may not read a part of the cluster, a warning names it and the skipped checks. The role
` + "`bcsnet-operator`" + ` reads all parts; ` + "`bcsnet-viewer`" + ` reads all but pods and nodes.

`)
	checks := doctor.Checks()
	b.WriteString("| id | severity | what is wrong |\n|---|---|---|\n")
	for _, c := range checks {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", c.ID, c.ID, c.Severity, c.Title)
	}
	for i, c := range checks {
		if i == 0 || checks[i-1].Group != c.Group {
			fmt.Fprintf(&b, "\n## Group %s\n", c.Group)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", c.ID, c.Meaning)
		fmt.Fprintf(&b, "* Impact: %s.\n* Remedy: %s\n* Reads: %s.\n", c.Impact, c.Remedy, reads(c))
	}
	return b.String()
}

func reads(c doctor.Check) string {
	var parts []string
	for _, p := range doctor.Reads([]doctor.Check{c}) {
		parts = append(parts, string(p))
	}
	return strings.Join(parts, ", ")
}
