package workload

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Interface is an interface in a pod's Multus annotation, other than the first one.
type Interface struct {
	IfName string
	// Attachment is "namespace/name" of its NetworkAttachmentDefinition, without the namespace if it is the pod's;
	// empty for a pod of Trim.
	Attachment string
}

// element has the relevant fields of an element of a Multus annotation.
type element struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Interface string `json:"interface,omitempty"`
	Reference string `json:"ipam-claim-reference,omitempty"`
}

// ifName returns the interface of an element. Without a name it gets Multus' name for the position, which counts from
// 0.
func (e element) ifName(at int) string { return cmp.Or(e.Interface, fmt.Sprintf("net%d", at+1)) }

// elementsOf parses the networks of a Multus annotation: a JSON list, or comma-separated names such as
// storage/san@net1.
func elementsOf(text string) (all []element, err error) {
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "[{\"") {
		err = json.Unmarshal([]byte(text), &all)
		return all, err
	}
	for word := range strings.SplitSeq(text, ",") {
		var e element
		name, ifName, _ := strings.Cut(strings.TrimSpace(word), "@")
		if namespace, rest, ok := strings.Cut(name, "/"); ok {
			e.Namespace, name = namespace, rest
		}
		if e.Name, e.Interface = name, ifName; name == "" {
			return nil, fmt.Errorf("%q names no network", text)
		}
		all = append(all, e)
	}
	return all, nil
}

// furtherInterfaces returns the interfaces in the annotation. several reports whether there are any, even if the
// annotation cannot be read.
func furtherInterfaces(annotations map[string]string) (all []Interface, several bool) {
	text := annotations[networksAnnotation]
	if text == "" {
		return nil, false
	}
	elements, err := elementsOf(text)
	if err != nil {
		return nil, true
	}
	for i, e := range elements {
		name := e.Name
		if e.Namespace != "" {
			name = e.Namespace + "/" + name
		}
		all = append(all, Interface{IfName: e.ifName(i), Attachment: name})
	}
	return all, len(all) > 0
}

// trimNetworks returns the part of the annotation that furtherInterfaces needs for the names of interfaces.
func trimNetworks(text string) string {
	elements, err := elementsOf(text)
	if err != nil {
		return "{" // this cannot be parsed either
	}
	names := make([]element, len(elements))
	for i, e := range elements {
		names[i].Interface = e.Interface
	}
	short, _ := json.Marshal(names) // cannot fail
	return string(short)
}

// multusName matches interfaces that Multus names by their position. Networks of Multus' own configuration, which the
// pod does not list, shift the positions.
var multusName = regexp.MustCompile(`^net[0-9]+$`)

// mayHave reports whether the pod is known to have an interface (has), and whether it may have it (may).
func (p Pod) mayHave(ifName string) (has, may bool) {
	has = ifName == lease.DefaultIfName || ifName == p.interfaceName() || slices.Contains(p.IfNames, ifName) ||
		slices.ContainsFunc(p.Interfaces, func(i Interface) bool { return i.IfName == ifName })
	return has, has || len(p.Interfaces) == 0 || multusName.MatchString(ifName)
}
