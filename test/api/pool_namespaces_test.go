package api

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

func TestPoolNamespaceSelector(t *testing.T) {
	const (
		empty = `spec.namespaceSelector: Invalid value: must not be empty: it would match every namespace; leave it out, or ` +
			`name a label in matchLabels or matchExpressions`
		operators = `spec.namespaceSelector: Invalid value: takes the operators In and NotIn with values, and Exists and ` +
			`DoesNotExist without`
	)
	expressions := func(all ...metav1.LabelSelectorRequirement) func(*v1.BCSNetPoolSpec) {
		return namespaceSelector(metav1.LabelSelector{MatchExpressions: all})
	}
	isDefault := func(is bool) func(*v1.BCSNetPoolSpec) {
		return func(s *v1.BCSNetPoolSpec) { s.Default = &is }
	}
	judge(t, map[string]poolCase{
		"labels": {edits: edits{namespaceSelector(metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}})}},
		"beside names": {edits: edits{
			namespaces("shop"), namespaceSelector(metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}),
		}},
		"all operators": {edits: edits{expressions(
			metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: []string{"x", "y"}},
			metav1.LabelSelectorRequirement{Key: "b", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"x"}},
			metav1.LabelSelectorRequirement{Key: "c", Operator: metav1.LabelSelectorOpExists},
			metav1.LabelSelectorRequirement{Key: "d", Operator: metav1.LabelSelectorOpDoesNotExist},
		)}},
		"one that matches all, written out": {edits: edits{expressions(
			metav1.LabelSelectorRequirement{Key: "no.such/label", Operator: metav1.LabelSelectorOpDoesNotExist},
		)}},
		"empty":              {edits: edits{namespaceSelector(metav1.LabelSelector{})}, want: []string{empty}},
		"empty labels":       {edits: edits{namespaceSelector(metav1.LabelSelector{MatchLabels: map[string]string{}})}, want: []string{empty}},
		"unknown operator":   {edits: edits{expressions(metav1.LabelSelectorRequirement{Key: "a", Operator: "Is"})}, want: []string{operators}},
		"In without values":  {edits: edits{expressions(metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpIn})}, want: []string{operators}},
		"Exists with values": {edits: edits{expressions(metav1.LabelSelectorRequirement{Key: "a", Operator: metav1.LabelSelectorOpExists, Values: []string{"x"}})}, want: []string{operators}},
		"default: false":     {edits: edits{isDefault(false)}},
		"default: true":      {edits: edits{isDefault(true)}},
	})
}
