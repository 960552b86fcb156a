package cli

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

var (
	cluster *controlplane.ControlPlane
	lists   *audit
)

// suite runs the tests of the package with one control plane.
type suite struct{ m *testing.M }

func (s suite) Run() int {
	var err error
	lists, err = newAudit()
	defer func() { _ = os.RemoveAll(lists.dir) }() // a leftover is no reason to fail
	if err == nil {
		if code := controlplane.Main(s.m, &cluster, lists.option()); code != 0 {
			return code
		}
		err = lists.check()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"bcsnetctl": program, "kubectl-bcsnet": program})
}

// rawEnv has the program print as it is.
const rawEnv = "BCSNETCTL_TEST_RAW"

// program is the command line under test. What differs from run to run is masked, and an exit code other
// than 0 is a line on standard error.
func program() {
	const version = "v0.0.0-test"
	if os.Getenv(rawEnv) != "" {
		os.Exit(Main(os.Args, version, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
	}
	_ = os.Setenv(app.CompletionEnv, "1m") // however slow the machine is
	var stdout, stderr bytes.Buffer
	code := Main(os.Args, version, genericiooptions.IOStreams{In: os.Stdin, Out: &stdout, ErrOut: &stderr})
	if code != app.ExitDone {
		fmt.Fprintf(&stderr, "[exit %d]\n", code)
	}
	os.Stdout.Write(masked(stdout.Bytes()))
	os.Stderr.Write(masked(stderr.Bytes()))
	os.Exit(code)
}

// masks in the order of their use.
var masks = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`(?m)^◎ reading .*\n`), ""}, // of a read that takes long on a slow machine
	{regexp.MustCompile(`\bv1\.\d+\.\d+\b`), "KUBERNETES"},
	{regexp.MustCompile(`https?://127\.0\.0\.1:\d+`), "SERVER"},
	{regexp.MustCompile(`\bgo1\.\d+(\.\d+)? \w+/\w+`), "GO"},
	{regexp.MustCompile(`("?\b(?:uid|podUID|resourceVersion|creationTimestamp|lastTransitionTime|updateTime|startedAt)"?: )"?[^",\n]+"?`), `${1}MASKED`},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "YYYY-MM-DDTHH:MM:SSZ"},
	{regexp.MustCompile(`(?m)^\d+[smhdy](\d+[smhd])? +(Normal|Warning)`), "AGE  $2"},
	{regexp.MustCompile(`\b\d+[smhd](\d+[smhd])? ago\b`), "AGE ago"},
	{regexp.MustCompile(`\bin (\d+[hms])+\b`), "in SPAN"},
	{regexp.MustCompile(`(?m)(( |^)\d+[smhdy](\d+[smhd])?)$`), "${2}AGE"},
}

func masked(text []byte) []byte {
	for _, m := range masks {
		text = m.pattern.ReplaceAll(text, []byte(m.by))
	}
	return text
}
