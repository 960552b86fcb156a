package resource

import (
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// Selectors are the flags -l and --field-selector, which the API server evaluates.
type Selectors struct {
	Labels, Fields string
}

// AddLabels adds the flag -l to a list. nouns are its objects.
func (s *Selectors) AddLabels(cmd *cobra.Command, nouns string) {
	cmd.Flags().StringVarP(&s.Labels, "selector", "l", "", "only "+nouns+" with these `LABELS`, as in kubectl")
}

// AddFields adds the flag --field-selector to a list. example is a selectable field.
func (s *Selectors) AddFields(cmd *cobra.Command, nouns, example string) {
	cmd.Flags().StringVar(&s.Fields, "field-selector", "", "only "+nouns+" with these `FIELDS`, such as "+example)
}

// Validate refuses selectors that cannot be parsed.
func (s *Selectors) Validate() error {
	if _, err := fields.ParseSelector(s.Fields); err != nil {
		return app.Usagef("--field-selector %q: %v", s.Fields, err)
	}
	if _, err := labels.Parse(s.Labels); err != nil {
		return app.Usagef("--selector %q: %v", s.Labels, err)
	}
	return nil
}

// Options returns the selectors for a list or a watch.
func (s *Selectors) Options() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: s.Labels, FieldSelector: s.Fields}
}

// Words describe the selection in a sentence.
func (s *Selectors) Words() (out []string) {
	if s.Fields != "" {
		out = append(out, s.Fields)
	}
	if s.Labels != "" {
		out = append(out, "labels "+s.Labels)
	}
	return out
}

// WithWords adds a selection to a noun.
func WithWords(noun string, words []string) string {
	if len(words) == 0 {
		return noun
	}
	return noun + " with " + strings.Join(words, ", ")
}
