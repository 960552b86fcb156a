package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// VMLabel is the label by which KubeVirt names a pod's virtual machine.
const VMLabel = "vm.kubevirt.io/name"

// KubeVirt writes the UID and the name of a migration on the pod that it creates for the target.
const (
	migrationLabel      = "kubevirt.io/migrationJobUID"
	migrationAnnotation = "kubevirt.io/migrationJobName"
)

// migrationOf returns the migration whose target the pod claims to be.
func migrationOf(p *corev1.Pod) Migration {
	return Migration{Name: p.Annotations[migrationAnnotation], UID: p.Labels[migrationLabel]}
}

// IsMachine reports whether an owner is a KubeVirt virtual machine instance.
func (o Owner) IsMachine() bool { return o.Group == kubevirtGroup && o.Kind == vmiKind }

// identity returns for whom within a claim an address is kept: the primary key, else the virtual machine's name, else
// the pod's name if it is stable, else empty for the app as a whole.
func identity(primaryKey string, w Workload, n nature, pod Pod) string {
	switch {
	case primaryKey != "":
		return primaryKey
	case n == machine, n == bare && w.Kind != podKind:
		return w.Name
	case n == bare, n == app && numbered(w, pod.Name):
		return pod.Name
	}
	return ""
}

// maxOrdinal limits the ordinals of kinds that may also generate random names: these end in five letters and digits,
// which may all be digits.
const maxOrdinal = 9999

// numbered reports whether a pod's name is its workload's with an ordinal, as for a StatefulSet. Names of pods of
// Deployments and ReplicaSets have a random part, whose five characters may all be digits.
func numbered(w Workload, pod string) bool {
	digits, ok := strings.CutPrefix(pod, w.Name+"-")
	if !ok || len(digits) > 1 && digits[0] == '0' {
		return false
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	return err == nil && (n <= maxOrdinal || w.Group == appsGroup && w.Kind == "StatefulSet")
}

// SharedClaim returns the name of the claim of a shared pool, in the namespace of the controller.
func SharedClaim(shared string) string { return claimName(sharedPrefix, shared) }

// SharedName returns the name of a shared pool from the name of its claim. It is empty if that name is shortened or
// belongs to another claim.
func SharedName(claim string) string {
	shared, ok := strings.CutPrefix(claim, sharedPrefix+"-")
	if !ok || SharedClaim(shared) != claim {
		return ""
	}
	return shared
}

// claimName returns a name for a claim from annotations. Equal texts get equal names, different texts different ones.
func claimName(prefix, text string) string {
	name := prefix + "-" + text
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, name)
	hash := hashOf(name)
	safe = strings.Trim(safe[:min(len(safe), validation.DNS1123SubdomainMaxLength-len(hash)-1)], "-")
	return safe + "-" + hash
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:5])
}
