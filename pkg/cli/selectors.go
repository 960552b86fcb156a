package cli

import (
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// selectors are the flags -l and --field-selector, which the API server judges.
type selectors struct {
	labels, fields string
}

// addLabels gives a list the flag -l over objects that are called nouns.
func (s *selectors) addLabels(cmd *cobra.Command, nouns string) {
	cmd.Flags().StringVarP(&s.labels, "selector", "l", "", "only "+nouns+" with these `LABELS`, as in kubectl")
}

// addFields gives a list the flag --field-selector; example is a field that the API server can select by.
func (s *selectors) addFields(cmd *cobra.Command, nouns, example string) {
	cmd.Flags().StringVar(&s.fields, "field-selector", "", "only "+nouns+" with these `FIELDS`, such as "+example)
}

func (s *selectors) validate() error {
	if _, err := fields.ParseSelector(s.fields); err != nil {
		return app.Usagef("--field-selector %q: %v", s.fields, err)
	}
	if _, err := labels.Parse(s.labels); err != nil {
		return app.Usagef("--selector %q: %v", s.labels, err)
	}
	return nil
}

func (s *selectors) options() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: s.labels, FieldSelector: s.fields}
}

// words say in a sentence what was selected.
func (s *selectors) words() (out []string) {
	if s.fields != "" {
		out = append(out, s.fields)
	}
	if s.labels != "" {
		out = append(out, "labels "+s.labels)
	}
	return out
}

// withWords adds to a noun what it must have.
func withWords(noun string, words []string) string {
	if len(words) == 0 {
		return noun
	}
	return noun + " with " + strings.Join(words, ", ")
}
