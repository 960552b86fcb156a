package system

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// rangeExcludes withdraws addresses by exclude of a range, in each NetworkAttachmentDefinition that has it. Whereabouts
// leaves pods alone whose address is excluded.
type rangeExcludes struct{}

func (rangeExcludes) Kind() schema.GroupVersionResource {
	return resource("k8s.cni.cncf.io", "v1", "network-attachment-definitions")
}

func (rangeExcludes) InUse() bool { return true }

func (rangeExcludes) ByName() bool { return true }

func (rangeExcludes) New(*v1.BCSNetPool) *unstructured.Unstructured { return nil }

func (rangeExcludes) Carries(o *unstructured.Unstructured, p *v1.BCSNetPool) (found bool) {
	subnet, err := netip.ParsePrefix(p.Spec.Net + "/" + strconv.Itoa(int(p.Spec.Mask)))
	_, _ = eachRange(o, func(_ map[string]any, _ []string, of netip.Prefix) error {
		found = found || err == nil && of.Overlaps(subnet)
		return nil
	})
	return found
}

func (rangeExcludes) Spent(*unstructured.Unstructured) bool { return false }

// Problem finds a definition whose ranges are not known entirely. It can allocate addresses of any pool.
func (rangeExcludes) Problem(o *unstructured.Unstructured, _ *v1.BCSNetPool) string {
	text, _, err := unstructured.NestedString(o.Object, "spec", "config")
	var config mainPlugin
	if err == nil {
		err = json.Unmarshal([]byte(text), &config)
	}
	if err != nil && strings.Contains(fmt.Sprint(o.Object["spec"]), "whereabouts") {
		return fmt.Sprintf("its config cannot be read: %v", err)
	}
	if err != nil {
		return ""
	}
	has, found := 0, 0
	for _, p := range append([]mainPlugin{config}, config.Plugins...) {
		if p.IPAM.Type != "whereabouts" {
			continue
		}
		n := len(p.IPAM.Ranges)
		if p.IPAM.Range != "" {
			n++
		}
		if n == 0 {
			return "its ipam whereabouts has no range: a file of the nodes has it, which cannot exclude addresses"
		}
		has += n
	}
	_, err = eachRange(o, func(map[string]any, []string, netip.Prefix) error { found++; return nil })
	switch {
	case err != nil:
		return fmt.Sprintf("its config cannot be read: %v", err)
	case found != has:
		return "not every range of its config is read: write ipam, type, ipRanges and range in these letters"
	}
	return ""
}

// Withdrawn returns what each range excludes that could allocate it.
func (rangeExcludes) Withdrawn(o *unstructured.Unstructured) (*netipx.IPSet, error) {
	ours, err := noted(o)
	if err != nil || len(ours.Ranges()) == 0 {
		return ours, err
	}
	_, err = eachRange(o, func(_ map[string]any, exclude []string, of netip.Prefix) error {
		has, err := setOf(exclude)
		if err == nil {
			ours = ipaddr.Subtract(ours, ipaddr.Subtract(ipaddr.SetOf(netipx.RangeOfPrefix(of)), has))
		}
		return err
	})
	return ours, err
}

func (r rangeExcludes) Set(o *unstructured.Unstructured, withdrawn *netipx.IPSet) error {
	before, err := noted(o)
	if err != nil {
		return err
	}
	config, err := eachRange(o, func(section map[string]any, exclude []string, of netip.Prefix) error {
		whole := ipaddr.SetOf(netipx.RangeOfPrefix(of))
		inside := ipaddr.Intersect(withdrawn, whole)
		list, err := replaced(exclude, ipaddr.Intersect(before, whole), inside, formatPrefixes)
		if section["exclude"] = list; len(list) == 0 {
			delete(section, "exclude")
		}
		return err
	})
	if err != nil {
		return err
	}
	note(o, withdrawn)
	return unstructured.SetNestedField(o.Object, config, "spec", "config")
}

// eachRange calls f for each range of Whereabouts in a network configuration, and returns the configuration after it.
func eachRange(
	o *unstructured.Unstructured, f func(section map[string]any, exclude []string, of netip.Prefix) error,
) (string, error) {
	text, _, err := unstructured.NestedString(o.Object, "spec", "config")
	if err != nil {
		return "", err
	}
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return "", err
	}
	plugins, _ := all["plugins"].([]any)
	for _, p := range append([]any{all}, plugins...) {
		plugin, _ := p.(map[string]any)
		ipam, _ := plugin["ipam"].(map[string]any)
		if ipam["type"] != "whereabouts" {
			continue
		}
		ranges, _ := ipam["ipRanges"].([]any)
		for _, r := range append([]any{ipam}, ranges...) {
			section, _ := r.(map[string]any)
			if section["range"] == nil {
				continue
			}
			var one whereaboutsRange
			text, err := json.Marshal(section)
			if err == nil {
				err = json.Unmarshal(text, &one)
			}
			exclude := one.Exclude
			subnet, _, wrong := one.parse()
			if err = errors.Join(err, wrong); err == nil {
				err = f(section, exclude, subnet)
			}
			if err != nil {
				return "", err
			}
		}
	}
	out, err := json.Marshal(all)
	return string(out), err
}
