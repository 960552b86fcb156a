package install

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/resource"
)

// keepArguments replaces the arguments for some flags by those of the existing object. The flags have values, after =
// or as the next argument. If the object has none of the flags, nothing changes.
func keepArguments(s step, flags ...string) error {
	isOne := func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(flags, name)
	}
	var kept []string
	args := resource.ContainerArguments(*s.have)
	for i, arg := range args {
		if !isOne(arg) {
			continue
		}
		if !strings.Contains(arg, "=") && i+1 < len(args) {
			arg += "=" + args[i+1]
		}
		kept = append(kept, arg)
	}
	if len(kept) == 0 {
		return nil
	}
	return replaceArguments(s.want, isOne, kept...)
}

// replaceArguments replaces the arguments that match others by new ones. If none match, it appends the new ones.
func replaceArguments(o unstructured.Unstructured, others func(arg string) bool, by ...string) error {
	args := resource.ContainerArguments(o)
	at := slices.IndexFunc(args, others)
	if at < 0 {
		at = len(args)
	}
	return resource.SetContainerArguments(o, slices.Insert(slices.DeleteFunc(args, others), at, by...))
}
