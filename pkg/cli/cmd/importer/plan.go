package importer

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/printer"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/importer/system"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// job is the work of an import, with its results.
type job struct {
	rows importer.Rows
	plan importer.Plan
	// stored are the pools and claims of a backup as its file has them.
	stored map[string]*unstructured.Unstructured
	// done has the pools and claims as they are stored or would be; leases has the leases, if they are printed.
	done   []unstructured.Unstructured
	leases []lease.Lease
	// unfinished are the pools of which an address was not made.
	unfinished map[string]bool
}

func (j *job) empty() bool {
	return len(j.plan.Pools) == 0 && len(j.plan.Claims) == 0 && len(j.plan.Leases) == 0 &&
		len(j.plan.Uncordon)+len(j.plan.Closed) == 0
}

// cordoned names the pools that were made and stay cordoned.
func (j *job) cordoned() (names []string) {
	for _, p := range j.plan.Pools {
		if !slices.Contains(j.plan.Uncordon, p.Name) {
			names = append(names, p.Name)
		}
	}
	return names
}

// plan reads both systems and compares them.
func (v *takeOver) plan(ctx context.Context) (*job, error) {
	defer v.Say.WaitLater("reading pools, claims, addresses and pods in " + v.Where())()
	if err := v.leases.Probe(ctx, 0); err != nil { // its answer says what time it is there
		return nil, resource.Explain(v.App, err)
	}
	now := v.leases.Now()
	rows, err := v.system.Read(ctx, v.source())
	if missing := (*system.NotServedError)(nil); errors.As(err, &missing) {
		return nil, notServed(missing)
	}
	if err != nil {
		return nil, err
	}
	plan, err := v.compare(ctx, rows, now)
	return &job{rows: rows, plan: plan, stored: rows.Stored, unfinished: map[string]bool{}}, err
}

// compare compares the rows of the other system with what is here. now is the time before anything was read.
func (v *takeOver) compare(
	ctx context.Context, rows importer.Rows, now time.Time,
) (plan importer.Plan, err error) {
	x, err := resource.ReadAll(ctx, v.App, v.leases)
	if err != nil {
		return plan, err
	}
	ours, err := v.ourClaims(ctx)
	if err != nil {
		return plan, err
	}
	pods, err := resource.AllPods(ctx, v.App)
	if err != nil {
		return plan, resource.Explain(v.App, err)
	}
	here, err := v.fitting(ctx, rows)
	if err != nil {
		return plan, err
	}
	return importer.Make(importer.Input{
		Rows: rows, Index: x, Ours: ours, Here: here, Pods: pods, Now: now, By: v.Author(ctx),
		OnlyPodsHere: v.onlyPodsHere,
	}), nil
}

// fitting returns the pools here. It refuses groups of a backup that would not fit their parents.
func (v *takeOver) fitting(ctx context.Context, rows importer.Rows) (map[string]*v1.BCSNetPool, error) {
	if rows.Stored == nil {
		return nil, nil
	}
	list, err := resource.AllPools(ctx, v.App)
	if err != nil {
		return nil, err
	}
	here := map[string]*v1.BCSNetPool{}
	for _, p := range list {
		here[p.Name] = p.BCSNetPool
	}
	var made []ipam.Pool
	for i := range rows.Pools {
		if p := &rows.Pools[i]; here[p.Name] == nil {
			made = append(made, store.Pool(p))
		}
	}
	return here, resource.NewFit(resource.Given(list), made...).Check(ctx, v.App)
}

// source returns the other system as its reader sees it.
func (v *takeOver) source() system.Source {
	return system.Source{Each: v.each, Get: v.get, Dirs: v.roots, Files: v.files}
}

// each calls fn with the objects of a kind of the other system. served is false if the API server does not know it.
func (v *takeOver) each(
	ctx context.Context, kind schema.GroupVersionResource, fn func(object []byte) error,
) (served bool, err error) {
	err = v.EachOther(ctx, kind, fn)
	if resource.NoSuchResource(err) {
		return false, nil
	}
	return true, resource.Explain(v.App, err)
}

// listOthers lists a kind of another system. served is false if the API server does not know the kind.
func listOthers(
	ctx context.Context, s *app.App, kind schema.GroupVersionResource,
) (items []unstructured.Unstructured, served bool, err error) {
	c, err := s.Dynamic()
	if err != nil {
		return nil, false, err
	}
	items, err = resource.ListPages(ctx, c.Resource(kind), metav1.ListOptions{})
	switch {
	case resource.NoSuchResource(err):
		return nil, false, nil
	case err != nil:
		return nil, false, resource.Explain(s, err)
	}
	return items, true, nil
}

// get reads an object of the other system.
func (v *takeOver) get(
	ctx context.Context, kind schema.GroupVersionResource, namespace, name string,
) (o *unstructured.Unstructured, found bool, err error) {
	c, err := v.Dynamic()
	if err != nil {
		return nil, false, err
	}
	o, err = c.Resource(kind).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	return o, err == nil, resource.Explain(v.App, err)
}

// ourClaims returns bcsnet's claims by namespace/name.
func (v *takeOver) ourClaims(ctx context.Context) (map[string]*v1.BCSNetIPClaim, error) {
	api, err := resource.NewClaims(v.App)
	if err != nil {
		return nil, err
	}
	all, err := api.List(ctx, "", metav1.ListOptions{})
	out := make(map[string]*v1.BCSNetIPClaim, len(all))
	for _, c := range all {
		out[c.FullName()] = c.BCSNetIPClaim
	}
	return out, err
}

// show prints what an import would do and what it leaves out. The leases go to standard output as a table; other
// formats print all objects as they are stored.
func (v *takeOver) show(j *job) error {
	p := j.plan
	if j.empty() {
		v.Say.Note("nothing to %s: everything of %s is here already", v.words.do, v.system.Title)
	} else {
		v.Say.Start("to %s: %s, %s, %s", v.words.do, humanize.Plural(len(p.Pools), "pool"),
			humanize.Plural(len(p.Claims), "claim"),
			humanize.Plural(len(p.Leases), "address"))
	}
	if p.Already > 0 {
		v.Say.Note("%s %s here already", humanize.Plural(p.Already, "address"), humanize.OneOr(p.Already, "is", "are"))
	}
	if p.Elsewhere > 0 {
		v.Say.Note("%s %s in no pool", humanize.Plural(p.Elsewhere, "address"),
			humanize.OneOr(p.Elsewhere, "lies", "lie"))
	}
	if len(p.Leases) > 0 && v.output.Printer == nil {
		columns := slices.DeleteFunc(resource.LeaseColumns(v.App, true),
			func(c printer.Column[lease.Lease]) bool { return c.Name == "AGE" || c.Name == "IF" })
		if err := printer.NewTable(&v.output, columns).Write(v.Out, p.Leases); err != nil {
			return err
		}
	}
	for _, r := range p.Left {
		v.Say.Note("left: %s: %s", r.Object, r.Cause)
	}
	for _, r := range p.Conflicts {
		v.Say.Warn("%s: %s", r.Object, r.Cause)
	}
	return nil
}
