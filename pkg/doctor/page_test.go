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

` + "`bcsnetctl doctor`" + ` reads the cluster once and runs these checks over what it read. It changes nothing without
` + "`--fix`" + `. Checks are chosen by id or group with ` + "`--only` and `--skip`" + `; ids and groups are stable. It exits with 3 when
there is a finding of severity *error*, else with 0: an error is something that does not work, or an address that is lost or used twice.

The leader of the controllers runs the same checks every few minutes, those of the group *install* and the one of the Service
network left out, and publishes their counts: ` + "`bcsnet_doctor_findings{check,severity}`" + `.

Leases and pods that changed within the last minute are not judged: the status of a pod follows its addresses by seconds. Leases of an
owner that is no pod are never leaks. Whether the container of a lease still exists cannot be seen through the API server; the node's
CNI plugin knows.

` + "`--fix`" + ` releases what the checks of the group *leaks* find, and nothing else. Each address is read again first, and so is its pod, not from a
cache; the write carries the version that was read, so nobody else's change is lost. Addresses on a host that is no ready node are
left alone: their containers may still run. When the machine is off: ` + "`bcsnetctl release-host HOST`" + `.

A part of the cluster that the user may not read is named in a warning, together with the checks that were skipped for it. The role
` + "`bcsnet-operator`" + ` reads all parts; ` + "`bcsnet-viewer`" + ` reads all but pods and nodes.

`)
	checks := doctor.Checks()
	b.WriteString("| id | group | severity | what is wrong |\n|---|---|---|---|\n")
	for _, c := range checks {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", c.ID, c.ID, c.Group, c.Severity, c.Title)
	}
	for i, c := range checks {
		if i == 0 || checks[i-1].Group != c.Group {
			fmt.Fprintf(&b, "\n## Group %s\n", c.Group)
		}
		fmt.Fprintf(&b, "\n### %s\n\n*%s*: %s.\n\n%s\n\n", c.ID, c.Severity, c.Title, c.Meaning)
		fmt.Fprintf(&b, "* Impact: %s.\n* Mend: %s\n* Reads: %s.\n", c.Impact, c.Mend, reads(c))
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
