package sim_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/bcsnet/bcsnet/test/judge"
)

// machineHosts are hosts of virtual machines alone, two for each: what befalls them befalls no slot.
const machineHosts = 2 * maxMachines

// maxMachines bounds how many virtual machines there are.
const maxMachines = 3

// machine is a virtual machine of KubeVirt that migrates live, again and again: virt-controller, and the kubelets of
// its hosts. Its address is kept for it, and its pods have it one after the other, or two at a time.
type machine struct {
	*fixture
	number, steps int
	name, uid     string
	rng           *rand.Rand
	// pods that live, the older one first; nil where one wants an address yet.
	pods []*slot
	// still is until when it does not migrate: a container of it has ended without a DEL.
	still time.Time
}

// newMachines returns one machine for every twelve slots; none where the store is put back, which halts slots alone.
func (f *fixture) newMachines() (all []*machine) {
	for i := range min(f.plan.Slots/12, maxMachines) {
		if name := fmt.Sprint("machine ", i); f.plan.Sticky && !f.plan.Restores && f.plan.has(name) {
			all = append(all, &machine{fixture: f, number: i, name: fmt.Sprint("vm-", i)})
		}
	}
	return all
}

const kubevirt = "/apis/kubevirt.io/v1/namespaces/" + namespace + "/"

// run lives until there is no more load. The pods that it has then stay.
func (m *machine) run() {
	m.rng = draw(m.plan.Seed, m.name)
	code, answer, ok := m.insist(http.MethodPost, kubevirt+"virtualmachineinstances", m.object())
	if !ok || code != http.StatusCreated {
		return
	}
	meta, _ := answer["metadata"].(map[string]any)
	m.uid, _ = meta["uid"].(string)
	if p := m.pod(0, ""); p != nil && m.starts(p) {
		m.pods = []*slot{p}
	}
	for len(m.pods) > 0 && m.pause(m.load, time.Duration(m.rng.IntN(400))*time.Millisecond) {
		m.steps++
		m.rng = draw(m.plan.Seed, m.name, m.steps)
		p := m.pods[m.rng.IntN(len(m.pods))]
		p.rng = m.rng
		switch n := m.rng.IntN(10); {
		case n < 3:
			p.repeat()
		case len(m.pods) > 1:
			m.ends(p)
		case time.Now().After(m.still):
			m.migrate()
		}
	}
}

// object is the machine as KubeVirt has it, with the pods that it lists.
func (m *machine) object(listed ...*slot) object {
	active := object{}
	for _, p := range listed {
		active[p.uid] = node(p.host)
	}
	return object{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": object{"name": m.name},
		"status": object{"phase": "Running", "activePods": active},
	}
}

// firstHost is the first of the two hosts that the machine migrates between.
func (m *machine) firstHost() int { return hosts + 2*m.number }

// pod makes a pod of the machine on one of its hosts, for a migration where one is named; nil when the run ends.
func (m *machine) pod(at int, migration string) *slot {
	s := &slot{
		fixture: m.fixture, number: 1001 + 8*m.number, host: m.firstHost() + at, machine: m.name, namespace: namespace,
		name: fmt.Sprintf("virt-launcher-%s-%d", m.name, m.steps), rng: m.rng, turn: make(chan struct{}, 1),
	}
	labels, annotations := object{"vm.kubevirt.io/name": m.name},
		object{"networkextension.bkbcs.tencent.com/release-policy": "never"}
	if migration != "" {
		_, by, _ := m.insist(http.MethodGet, kubevirt+"virtualmachineinstancemigrations/"+migration, nil)
		meta, _ := by["metadata"].(map[string]any)
		labels["kubevirt.io/migrationJobUID"], annotations["kubevirt.io/migrationJobName"] = meta["uid"], migration
	}
	code, answer, ok := m.insist(http.MethodPost, s.pods(), object{
		"metadata": object{
			"name": s.name, "namespace": s.namespace, "labels": labels, "annotations": annotations,
			"ownerReferences": []object{{
				"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": m.name, "uid": m.uid, "controller": true,
			}},
		},
		"spec": object{"nodeName": node(s.host), "terminationGracePeriodSeconds": 5, "containers": []object{{"name": "c", "image": "c"}}},
	})
	if !ok || code != http.StatusCreated {
		return nil
	}
	meta, _ := answer["metadata"].(map[string]any)
	s.uid, _ = meta["uid"].(string)
	s.created = time.Now()
	m.note("pod %s (%s) of machine %s is made on %s", s.name, s.uid, m.name, node(s.host))
	return s
}

// starts has a pod ask for its address, in one sandbox after the other, until it is served. It is false where the load
// ends before: the pod is given up.
func (m *machine) starts(p *slot) bool {
	for m.loading() && !m.verdict.Failed() {
		if p.begin(p.newSandbox()); p.sandbox != nil {
			return true
		}
		m.pause(m.load, 200*time.Millisecond)
	}
	p.deletePod()
	return false
}

// migrate begins a migration to the other host. KubeVirt lists the new pod among the machine's some time after it has
// made it, so that the first requests of it may come too early.
func (m *machine) migrate() {
	source, by := m.pods[0], fmt.Sprintf("%s-%d", m.name, m.steps)
	code, _, ok := m.insist(http.MethodPost, kubevirt+"virtualmachineinstancemigrations", object{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": object{"name": by},
		"spec": object{"vmiName": m.name}, "status": object{"phase": "Scheduling"},
	})
	if !ok || code != http.StatusCreated {
		return
	}
	target := m.pod(1-(source.host-m.firstHost()), by)
	if target == nil {
		return
	}
	listed, after := m.object(source, target), time.Duration(m.rng.IntN(1000))*time.Millisecond
	m.background.Go(func() {
		wait(after)
		_, _, _ = m.insist(http.MethodPut, kubevirt+"virtualmachineinstances/"+m.name, listed)
	})
	if !m.starts(target) {
		return
	}
	m.pods = append(m.pods, target)
	m.verdict.Count("operation migration")
	if fmt.Sprint(source.sandbox.addrs) != fmt.Sprint(target.sandbox.addrs) {
		m.verdict.Count("machine moved") // the operator has taken its address out of the pool
	}
}

// ends ends one of the two pods, as a migration that succeeded or failed does: with a DEL before or after its object
// goes, with two, or with none, or as the host of the pod goes.
func (m *machine) ends(p *slot) {
	n := m.rng.IntN(20)
	if n == 16 {
		m.losesTouch(p)
	}
	b := p.sandbox
	p.last(b)
	from := m.history.Now()
	switch {
	case n < 8:
		p.DEL(b, p.rng, from)
		if n < 3 {
			p.lateDEL(b, time.Duration(m.rng.IntN(3000))*time.Millisecond, from)
		}
		p.deletePod()
	case n > 16 && n < 19:
		m.losesHost(p, b, from)
	case n == 19 && m.forgetful():
		p.deletePod()
		m.still = time.Now().Add(2 * time.Minute)
		m.noteOver(p, b, from)
	default:
		p.deletePod()
		p.lateDEL(b, time.Duration(m.rng.IntN(3000))*time.Millisecond, from)
	}
	m.verdict.Count("operation end of a migration")
	for i, o := range m.pods {
		if o == p {
			m.pods = append(m.pods[:i:i], m.pods[i+1:]...)
			return
		}
	}
}

// noteOver notes that nobody says when a container gives up what it has.
func (m *machine) noteOver(p *slot, b *sandbox, from time.Duration) {
	m.verdict.Count("pod deleted without DEL")
	p.noteChange(b, b.addrs, false, from, judge.Never)
}

// end ends the pods that are left, in order.
func (m *machine) end() {
	for _, p := range m.pods {
		p.rng = draw(m.plan.Seed, "sweep", m.name)
		p.endPod(true)
	}
}
