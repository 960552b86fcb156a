package store

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// selector is a Kubernetes label selector in the form that the index needs.
type selector struct{ labels.Selector }

// Matches reports whether the selector matches some labels.
func (s selector) Matches(of map[string]string) bool { return s.Selector.Matches(labels.Set(of)) }

// Selector parses a label selector. With an error, it returns a selector that matches nothing. An empty selector, which
// matches everything in Kubernetes, is an error.
func Selector(s *metav1.LabelSelector) (ipam.Selector, error) {
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return selector{labels.Nothing()}, errors.New("is empty")
	}
	read, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return selector{labels.Nothing()}, err
	}
	return selector{read}, nil
}
