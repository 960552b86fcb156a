package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

func TestStrip(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing to do": {`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"a"}}`},
		"the annotation of kubectl apply": {
			`{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","keep":"me"},"managedFields":[{}]}}`,
			`{"metadata":{"annotations":{"keep":"me"}}}`,
		},
		"variables, however deep": {
			`{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":"secret"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}],"initContainers":[{"env":[{"name":"C","value":"secret"}]}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":"(removed)"},{"name":"B","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}],"initContainers":[{"env":[{"name":"C","value":"(removed)"}]}]}}}}`,
		},
		"what is no list of variables": {`{"data":{"env":"prod"}}`, `{"data":{"env":"prod"}}`},
	} {
		var o, want unstructured.Unstructured
		if err := errors.Join(json.Unmarshal([]byte(c.in), &o.Object),
			json.Unmarshal([]byte(c.want), &want.Object)); err != nil {
			t.Fatal(err)
		}
		strip(&o)
		if diff := cmp.Diff(want.Object, o.Object); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestReportRunsCommands: the output of another command becomes a file of the report; findings are no error,
// and what that command has to say goes nowhere.
func TestReportRunsCommands(t *testing.T) {
	s := app.New(app.ProgramName, "v0", genericiooptions.NewTestIOStreamsDiscard())
	root := &cobra.Command{Use: app.ProgramName, Args: cobra.ArbitraryArgs}
	v := &report{App: s, cmd: &cobra.Command{Use: "report"}}
	format := ""
	doctor := &cobra.Command{Use: "doctor", RunE: func(cmd *cobra.Command, _ []string) error {
		s.Say.Warn("heard")
		_, err := io.WriteString(s.Out, "findings as "+format)
		return errors.Join(err, cmd.Context().Err(), &app.Failure{Code: app.ExitFindings, Message: "findings"})
	}}
	doctor.Flags().StringVarP(&format, "output", "o", "", "")
	root.AddCommand(v.cmd, doctor)
	var b, said bytes.Buffer
	s.Say.W = &said
	before := s.Out
	_, err := v.command("doctor.json", "", "doctor", "-o", "json").write(context.WithoutCancel(t.Context()), &b)
	if b.String() != "findings as json" || err != nil || said.Len() > 0 || s.Out != before {
		t.Errorf("%q, %v, said %q", &b, err, &said)
	}
}
