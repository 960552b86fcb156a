package install

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// keepArguments gives what is wanted the arguments of some flags as the object in the cluster has them, in place of its
// own for these flags. Where that one has none of them nothing changes.
func keepArguments(s step, flags ...string) error {
	ofThese := func(arg string) bool {
		name, _, valued := strings.Cut(arg, "=")
		return valued && slices.Contains(flags, name)
	}
	kept := slices.DeleteFunc(resource.ControllerArguments(*s.have), func(arg string) bool { return !ofThese(arg) })
	if len(kept) == 0 {
		return nil
	}
	return replaceArguments(s.want, ofThese, kept...)
}

// replaceArguments puts arguments in the place of others, which is the end where there are no others.
func replaceArguments(o unstructured.Unstructured, others func(arg string) bool, by ...string) error {
	args := resource.ControllerArguments(o)
	at := slices.IndexFunc(args, others)
	if at < 0 {
		at = len(args)
	}
	return resource.SetControllerArguments(o, slices.Insert(slices.DeleteFunc(args, others), at, by...))
}
