package hostnic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Keys of the ConfigMap, and the document's key that is not a namespace.
const (
	Key           = "ipam"
	AutoAssignKey = "subnet-auto-assign"
	Default       = "Default"
)

// Mapping is the valid content of the ConfigMap.
type Mapping struct {
	// Blocks are the blocks of the document without duplicates, ordered by namespace and within a namespace by the
	// order of use.
	Blocks []Block
	// Defaults are the pools for namespaces that the document does not name.
	Defaults []string
	// AutoAssign makes namespaces get blocks automatically.
	AutoAssign bool
}

// Block is the name of a block in the list of a namespace.
type Block struct {
	Name, Namespace string
	// Place is the position in the list, from 0.
	Place int
	// Addrs are the addresses at the end of the name; invalid if there are none.
	Addrs netip.Prefix
}

// maxReported bounds the number of mistakes that an error names; maxQuoted bounds the length of a quoted name.
const maxReported, maxQuoted = 10, 80

// Read parses the data of the ConfigMap. Its errors follow hostnic's wording, if it has one.
func Read(data map[string]string) (Mapping, error) {
	m := Mapping{AutoAssign: data[AutoAssignKey] == "on"} // hostnic treats any other value as off
	document, ok := data[Key]
	if !ok {
		return m, fmt.Errorf("ipam format error: there is no key %s", Key)
	}
	lists, err := parse(document)
	if err != nil {
		return m, fmt.Errorf("ipam format error: %w", err)
	}
	return m, m.add(lists)
}

// list is the document's list for one namespace.
type list struct {
	namespace string
	blocks    []string
}

// parse parses the document's JSON object in its order. A namespace that appears twice is an error, because the choice
// between the two lists would be arbitrary.
func parse(document string) (lists []list, err error) {
	d := json.NewDecoder(strings.NewReader(document))
	switch t, err := d.Token(); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("unexpected end of JSON input")
	case err != nil:
		return nil, err
	case t == nil:
		return nil, errors.New("it is null; an empty mapping is {}")
	case t != json.Delim('{'):
		return nil, errors.New("it is not a JSON object of lists")
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		l := list{}
		l.namespace, _ = key.(string)
		if seen[l.namespace] {
			return nil, fmt.Errorf("%s is there twice", quote(l.namespace))
		}
		seen[l.namespace] = true
		if err := d.Decode(&l.blocks); err != nil {
			return nil, fmt.Errorf("%s: %w", quote(l.namespace), err)
		}
		lists = append(lists, l)
	}
	if _, err := d.Token(); errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected end of JSON input")
	} else if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind its JSON object")
	}
	return lists, nil
}

// add adds the lists. A block belongs to one namespace: names that end in the same addresses name the same block.
func (m *Mapping) add(lists []list) error {
	var errs []error
	byName, byAddrs := map[string]string{}, map[netip.Prefix]string{}
	for _, l := range lists {
		if l.namespace != Default && len(validation.ValidateNamespaceName(l.namespace, false)) > 0 {
			errs = append(errs, fmt.Errorf("ipam format error: %s is not the name of a namespace", quote(l.namespace)))
			continue
		}
		place := 0
		for _, name := range l.blocks {
			owner, taken := byName[name]
			b := Block{Name: name, Namespace: l.namespace, Place: place}
			addrs, ok := cidrAt(name)
			if ok && !taken && l.namespace != Default {
				b.Addrs = addrs
				owner, taken = byAddrs[addrs]
			}
			switch {
			case name == "":
				errs = append(errs, fmt.Errorf("ipam format error: %s has an empty name in its list",
					quote(l.namespace)))
				continue
			case taken && owner != l.namespace:
				errs = append(errs, fmt.Errorf("subnet %s was assigned to namespaces (%s %s) which was not allowed",
					Clip(name), owner, l.namespace))
				continue
			case taken:
				continue // twice in one list
			}
			byName[name] = l.namespace
			if b.Addrs.IsValid() {
				byAddrs[b.Addrs] = l.namespace
			}
			if l.namespace == Default {
				m.Defaults = append(m.Defaults, name)
				continue
			}
			m.Blocks = append(m.Blocks, b)
			place++
		}
	}
	if n := len(errs) - maxReported; n > 0 {
		errs = append(errs[:maxReported], fmt.Errorf("%d more are wrong", n))
	}
	return errors.Join(errs...)
}

// Short returns the name in a form for messages.
func (b Block) Short() string { return Clip(b.Name) }

// firstPriority is the priority of the first block in a list. Blocks that no list names have 0.
const firstPriority = 1000

// Priority returns the block's spec.priority, which makes its namespace use its blocks in the order of the list. Blocks
// after about the first 1,000 have the same priority.
func (b Block) Priority() int32 { return int32(max(firstPriority-b.Place, 1)) }

func quote(text string) string { return fmt.Sprintf("%q", Clip(text)) }

// Clip shortens a name for messages.
func Clip(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

// cidrAt returns the CIDR at the end of a block's name, as in 4100-172-16-3-0-26. The prefix is a tunnel's number in
// hostnic's names, and the pool in ours. IPv6 addresses are written out in full. ok is false if there is no CIDR, or
// one with bits beyond its length.
func cidrAt(name string) (block netip.Prefix, ok bool) {
	parts := strings.Split(name, "-")
	for _, family := range []struct {
		parts, width int // width is that of each part; 0 for any
		between      string
	}{{8, 4, ":"}, {4, 0, "."}} {
		n := len(parts) - family.parts - 1
		if n < 0 {
			continue
		}
		addr := parts[n : len(parts)-1]
		if family.width > 0 && !allOf(addr, family.width) {
			continue
		}
		block, err := netip.ParsePrefix(strings.Join(addr, family.between) + "/" + parts[len(parts)-1])
		if err == nil && block == block.Masked() && !block.Addr().Is4In6() {
			return block, true
		}
	}
	return block, false
}

// allOf reports whether all texts have the given length.
func allOf(texts []string, length int) bool {
	for _, t := range texts {
		if len(t) != length {
			return false
		}
	}
	return true
}
