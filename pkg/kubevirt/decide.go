package kubevirt

import (
	"fmt"

	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Machine has the relevant data of a VirtualMachineInstance.
type Machine struct {
	Metadata metadata `json:"metadata"`
	Status   struct {
		Phase string `json:"phase"`
		// ActivePods maps the UIDs of the machine's pods to their nodes.
		ActivePods     map[string]string `json:"activePods"`
		MigrationState *struct {
			MigrationUID string `json:"migrationUid"`
			TargetPod    string `json:"targetPod"`
			Completed    bool   `json:"completed"`
			Failed       bool   `json:"failed"`
			EndTimestamp string `json:"endTimestamp"`
		} `json:"migrationState"`
	} `json:"status"`
}

// Migration has the relevant data of a VirtualMachineInstanceMigration.
type Migration struct {
	Metadata metadata `json:"metadata"`
	Spec     struct {
		VMIName string `json:"vmiName"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

type metadata struct {
	Name              string `json:"name"`
	UID               string `json:"uid"`
	DeletionTimestamp string `json:"deletionTimestamp"`
}

// final reports whether a machine, or a migration, has ended.
func final(phase string) bool { return phase == "Succeeded" || phase == "Failed" }

// denies returns the reason why the pod to is not the target of a live migration of the machine whose pod is from;
// empty if it is. A machine or migration that does not exist at the API server is nil.
//
// KubeVirt writes the target's name into the machine only when that pod is ready, which it cannot be without an
// address. Until then two facts replace the name: the machine itself lists the pod's UID among its pods, and the
// migration that the pod names exists, belongs to that machine, and has not ended.
func denies(from, to workload.Pod, m *Machine, by *Migration) string {
	switch {
	case from.Namespace != to.Namespace || !from.Controller.IsMachine() || from.Controller != to.Controller:
		return fmt.Sprintf("pods %s and %s are not of one virtual machine", name(from), name(to))
	case to.Ended || to.Deleting:
		return fmt.Sprintf("pod %s has ended or is being deleted", name(to))
	case m == nil || m.Metadata.UID != to.Controller.UID:
		return "there is no VirtualMachineInstance " + machine(to)
	case m.Metadata.DeletionTimestamp != "" || final(m.Status.Phase):
		return fmt.Sprintf("VirtualMachineInstance %s has ended or is being deleted", machine(to))
	}
	state := m.Status.MigrationState
	ended := state == nil || state.Completed || state.Failed || state.EndTimestamp != ""
	switch {
	case !ended && state.TargetPod == to.Name:
		return ""
	case !ended && state.TargetPod != "":
		return fmt.Sprintf("VirtualMachineInstance %s migrates to pod %s", machine(to), state.TargetPod)
	case to.Migration.UID == "" || to.Migration.Name == "":
		return fmt.Sprintf("VirtualMachineInstance %s does not migrate to it", machine(to))
	case by == nil || by.Metadata.UID != to.Migration.UID || by.Spec.VMIName != m.Metadata.Name:
		return fmt.Sprintf("there is no migration %s of VirtualMachineInstance %s", to.Migration.Name, machine(to))
	case by.Metadata.DeletionTimestamp != "" || final(by.Status.Phase) ||
		state != nil && ended && state.MigrationUID == by.Metadata.UID:
		return fmt.Sprintf("migration %s of VirtualMachineInstance %s has ended or was cancelled", to.Migration.Name,
			machine(to))
	}
	if _, listed := m.Status.ActivePods[to.UID]; !listed {
		return fmt.Sprintf("VirtualMachineInstance %s does not list it among its pods yet", machine(to))
	}
	return ""
}

func name(p workload.Pod) string { return p.Namespace + "/" + p.Name }

func machine(p workload.Pod) string { return p.Namespace + "/" + p.Controller.Name }
