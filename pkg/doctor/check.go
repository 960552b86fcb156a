package doctor

import (
	"slices"

	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// Severity is the severity of a finding.
type Severity string

// Severities, the most severe first.
const (
	// Error: something does not work, or addresses are lost or used twice.
	Error Severity = "error"
	// Warning: something will not work, or is not as it should be.
	Warning Severity = "warning"
	// Info: good to know.
	Info Severity = "info"
)

// Severities returns all severities, the most severe first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast reports whether s is as severe as least, or more severe.
func (s Severity) AtLeast(least Severity) bool {
	return slices.Index(Severities(), s) <= slices.Index(Severities(), least)
}

// Group is a set of checks that belong together.
type Group string

// Groups of checks.
const (
	GroupInstall   Group = "install"
	GroupPools     Group = "pools"
	GroupLeaks     Group = "leaks"
	GroupAddresses Group = "addresses"
	GroupClaims    Group = "claims"
	GroupHosts     Group = "hosts"
)

// Check looks for one kind of problem. Its ID is stable.
type Check struct {
	ID       string
	Group    Group
	Severity Severity
	// Title describes the problem in a few words.
	Title string
	// Meaning says exactly when there is a finding, and which similar states are not findings.
	Meaning string
	// Impact is the consequence, in a few words.
	Impact string
	// Remedy says what to do about it.
	Remedy string
	// Needs are the parts of the snapshot without which the check cannot run. Wants are parts that it also uses if they
	// could be read.
	Needs, Wants []Part
	run          func(*facts) []Finding
}

// Finding is one problem. The command that mends it names the program bcsnetctl.
type Finding struct {
	Check    string
	Group    Group
	Severity Severity
	Object   Object
	// Pools are the pools that the finding is about; none if it is about the whole cluster.
	Pools []string
	Cause string
	// Impact is the impact of the check.
	Impact string
	// Fix is the command that solves the problem, or that leads to the solution.
	Fix string
	// Release is the lease whose release solves the problem; nil if that does not solve it, or needs a human decision.
	Release *lease.Lease
	// evidence is the evidence about the lease without its host.
	evidence gone.Evidence
}

// Doubt returns the reason why the lease must not be released, however long its holder has been gone: containers may
// run on its host, by the evidence of the Nodes that claim it. It is empty if there is no doubt.
func (f Finding) Doubt(claim []hosts.Node) string {
	e := f.evidence
	e.Host = gone.HostOf(claim)
	return gone.Default().Doubt(e, gone.Check(f.Check))
}

// Object is the object of a finding: its kind in lower case, and its name.
type Object struct{ Kind, Name string }

// String formats an object as kind/name.
func (o Object) String() string { return o.Kind + "/" + o.Name }

// Report is the result of the checks.
type Report struct {
	// Ran are the checks that ran. Skipped are the others, by the missing part.
	Ran     []Check
	Skipped map[Part][]string
	// Findings are ordered by severity, the most severe first, then in the order of the checks and of the objects.
	Findings []Finding
}

// Examine runs checks over a snapshot.
func Examine(s *Snapshot, checks []Check) Report {
	r := Report{Skipped: map[Part][]string{}}
	f := newFacts(s)
	by := map[Severity][]Finding{}
	for _, c := range checks {
		if i := slices.IndexFunc(c.Needs, func(p Part) bool { return s.Missing[p] != nil }); i >= 0 {
			r.Skipped[c.Needs[i]] = append(r.Skipped[c.Needs[i]], c.ID)
			continue
		}
		r.Ran = append(r.Ran, c)
		for _, found := range c.run(f) {
			found.Check, found.Group, found.Severity, found.Impact = c.ID, c.Group, c.Severity, c.Impact
			by[c.Severity] = append(by[c.Severity], found)
		}
	}
	r.Findings = slices.Concat(by[Error], by[Warning], by[Info])
	return r
}

// Select returns the checks with the given IDs or groups; no names stand for all. Those in skip are left out. unknown
// is the first name that is neither an ID nor a group.
func Select(only, skip []string) (checks []Check, unknown string) {
	all := Checks()
	for _, name := range append(slices.Clone(only), skip...) {
		if !slices.Contains(Names(), name) {
			return nil, name
		}
	}
	named := func(c Check, names []string) bool {
		return slices.Contains(names, c.ID) || slices.Contains(names, string(c.Group))
	}
	return slices.DeleteFunc(all, func(c Check) bool {
		return len(only) > 0 && !named(c, only) || named(c, skip)
	}), ""
}

// Names returns the IDs and groups of all checks, which are the names that Select accepts.
func Names() []string {
	var names []string
	for _, c := range Checks() {
		if !slices.Contains(names, string(c.Group)) {
			names = append(names, string(c.Group))
		}
		names = append(names, c.ID)
	}
	return names
}

// Reads returns the parts that some checks need or want, in their order.
func Reads(checks []Check) []Part {
	return slices.DeleteFunc(Parts(), func(p Part) bool {
		return !slices.ContainsFunc(checks, func(c Check) bool {
			return slices.Contains(c.Needs, p) || slices.Contains(c.Wants, p)
		})
	})
}
