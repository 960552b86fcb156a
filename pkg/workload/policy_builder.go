package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go4.org/netipx"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// statement is the parsed value of an annotation, with its object.
type statement struct {
	parsedValue
	key, value, object string
	level              Level
	binds              uint8
	field              Field
}

// String formats the annotation with its value and object, for refusals.
func (s *statement) String() string {
	value := clip(s.value)
	if s.level == onClaim {
		return fmt.Sprintf("%s %q of %s", s.key, value, s.object)
	}
	return fmt.Sprintf("annotation %s=%q of %s", s.key, value, s.object)
}

// readClaims adds the claim that somebody created for the workload, unless a nearer level names one. names are in the
// workload's namespace.
func (b *policyBuilder) readClaims(own owned, names []string) *ipam.Refusal {
	switch {
	case len(names) == 0, b.said[fieldClaim] != nil, b.said[fieldShared] != nil:
		return nil
	case len(names) > 1:
		return ipam.Refuse(ipam.ReasonClaimConflict, "claims %s of namespace %s are for %s: a pod draws from one",
			listed(names), own.Namespace, own).
			WithHint("name one in the pods' template by the annotation %s, or delete the others", ClaimAnnotation)
	}
	return b.add(&statement{
		parsedValue: parsedValue{text: names[0]}, key: OwnerField, value: own.Kind + " " + own.Name,
		object: "BCSNetIPClaim " + own.Namespace + "/" + names[0], level: onClaim, field: fieldClaim,
	})
}

// listed joins a few of the names.
func listed(names []string) string {
	if len(names) > 5 {
		names = append(slices.Clone(names[:5]), "others")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// maxShown limits how much of a value a message shows.
const maxShown = 120

// clip returns the part of a value that a message shows.
func clip(value string) string {
	if len(value) > maxShown {
		return strings.ToValidUTF8(value[:maxShown], "") + "…"
	}
	return value
}

// clipMiddle shortens an error about a value for a message: it keeps the beginning, which may quote the value, and the
// end, which states the problem.
func clipMiddle(text string) string {
	if len(text) <= 3*maxShown {
		return text
	}
	return clip(text) + strings.ToValidUTF8(text[len(text)-2*maxShown:], "")
}

// policyBuilder collects the annotations of a pod, its workload and its namespace, field by field. For each field the
// nearest level counts.
type policyBuilder struct {
	pod Pod
	// all are the statements in the order in which they were read.
	all      []*statement
	said     [fields]*statement
	sources  []Source
	readings *readings
	// unbound are annotations for other interfaces. apart reports whether the interface's claim differs from that of
	// the pod's other interfaces.
	unbound []Unbound
	apart   bool
	ignored []Ignored
	// others are terms of other interfaces and networks than the one that is asked about.
	others []otherTerm
}

// read reads the annotations of one object. It must be called for the nearest level first.
func (b *policyBuilder) read(level Level, object string, values map[string]string) *ipam.Refusal {
	if len(values) == 0 {
		return nil
	}
	for _, t := range b.pod.terms(values) {
		if t.On&level == 0 {
			continue
		}
		s := &statement{key: t.key, value: t.value, object: object, level: level, binds: t.binds, field: t.Field}
		var err error
		if s.parsedValue, err = b.readings.of(t.Annotation, t.value); err != nil {
			return ipam.Refuse(ipam.ReasonInvalidAnnotation, "%s: %s", s, clipMiddle(err.Error())).
				WithHint("correct or remove the annotation; all are listed in annotations in the documentation")
		}
		if t.Field != fieldSets || len(s.sets) > 0 { // arguments may ask for no address
			b.all = append(b.all, s)
		}
	}
	return nil
}

// addAll adds the statements from one rank on and before another, the nearest first.
func (b *policyBuilder) addAll(from, before Level) *ipam.Refusal {
	slices.SortStableFunc(b.all, func(x, y *statement) int { return cmp.Compare(x.rank(), y.rank()) })
	for _, s := range b.all {
		if s.rank() < from || s.rank() >= before {
			continue
		}
		if refusal := b.add(s); refusal != nil {
			return refusal
		}
	}
	return nil
}

// add adds a statement that ranks no higher than those before it.
func (b *policyBuilder) add(s *statement) *ipam.Refusal {
	f := s.field
	before := b.said[f]
	switch {
	case before == nil:
		b.said[f] = s
	case before.rank() != s.rank():
		if !before.isNarrowedBy(s, f) {
			return nil // the nearer one takes precedence
		}
		if refusal := narrows(before, s); refusal != nil {
			return refusal
		}
	case !before.equal(s.parsedValue):
		return contradict(before, s, "")
	default:
		// If two annotations agree, one of them may say more.
		before.mask, before.claims, before.implies = max(before.mask, s.mask), before.claims || s.claims,
			before.implies || s.implies
	}
	b.sources = append(b.sources, Source{Object: s.object, Key: s.key, Value: s.value, Gave: f.String()})
	return nil
}

// narrows returns a refusal if a pod names addresses outside those of its workload.
func narrows(pod, workload *statement) *ipam.Refusal {
	if pod.mask != 0 && workload.mask != 0 && pod.mask != workload.mask {
		return contradict(pod, workload, fmt.Sprintf(": the masks /%d and /%d differ", pod.mask, workload.mask))
	}
	for _, s := range pod.sets {
		if !within(s, workload.sets) {
			return contradict(pod, workload, ": the workload's addresses do not include the pod's")
		}
	}
	pod.claims = pod.claims || workload.claims
	if pod.mask == 0 {
		pod.mask = workload.mask
	}
	return nil
}

// within reports whether all addresses of a set are in the others.
func within(s *netipx.IPSet, others []*netipx.IPSet) bool {
	return len(ipaddr.Subtract(s, others...).Ranges()) == 0
}

// contradict returns a refusal for two contradicting annotations.
func contradict(a, b *statement, why string) *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonClaimConflict, "%s and %s contradict each other%s", a, b, why).
		WithHint("remove one of the two")
}

// drop removes a field and its source.
func (b *policyBuilder) drop(f Field) {
	b.said[f] = nil
	b.sources = slices.DeleteFunc(slices.Clone(b.sources), func(s Source) bool { return s.Gave == f.String() })
}

// pools returns the collected pools; none if there are none.
func (b *policyBuilder) pools() []string {
	if s := b.said[fieldPool]; s != nil {
		return s.pools
	}
	return nil
}

// families returns the collected families.
func (b *policyBuilder) families() (f ipam.Families) {
	if s := b.said[fieldFamilyPolicy]; s != nil {
		f.Policy = s.families.Policy
	}
	if s := b.said[fieldFamilies]; s != nil {
		f.Order = s.families.Order
	}
	return f
}

// text returns the collected value of a field that is a word; empty for none.
func (b *policyBuilder) text(f Field) string {
	if s := b.said[f]; s != nil {
		return s.text
	}
	return ""
}

// isDefault reports whether only the namespace sets a field.
func (b *policyBuilder) isDefault(f Field) bool {
	return b.said[f] != nil && b.said[f].level == OnNamespace
}
