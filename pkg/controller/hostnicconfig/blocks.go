package hostnicconfig

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/compat/hostnic"
	"github.com/bcsnet/bcsnet/pkg/controller/configmap"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// maxFailures is the number of failed blocks after which a pass is aborted: the API server has a problem, or a
// permission is missing.
const maxFailures = 10

// pass is one comparison of the blocks with the document.
type pass struct {
	*reconciler
	// objects are the existing blocks, by name.
	objects map[string]*v1.BCSNetPool
	// parents are the pools that have blocks of the document.
	parents map[string]struct{}
	done    changes
	failed  []error
	// differences describe the parts of the document that are not applied.
	differences []string
}

// changes are the changes of a pass, by names of blocks.
type changes struct{ given, changed, cordoned, deleted []string }

func (c changes) String() string {
	return configmap.Describe(configmap.Change{How: "gave", Names: c.given},
		configmap.Change{How: "changed", Names: c.changed}, configmap.Change{How: "cordoned", Names: c.cordoned},
		configmap.Change{How: "deleted", Names: c.deleted})
}

// apply gives namespaces the blocks in the document, and takes back blocks of the earlier document. It continues after
// an error.
func (r *reconciler) apply(ctx context.Context, m hostnic.Mapping, edited func() bool) (configmap.Outcome, error) {
	wanted, named := map[netip.Prefix]hostnic.Block{}, map[netip.Prefix]struct{}{}
	for _, b := range m.Blocks {
		if b.Addrs.IsValid() {
			wanted[b.Addrs], named[b.Addrs] = b, struct{}{}
		}
	}
	r.named.Store(&named)
	p := &pass{reconciler: r, objects: map[string]*v1.BCSNetPool{}, parents: map[string]struct{}{}}
	var list v1.BCSNetPoolList
	if err := r.cache.List(ctx, &list); err != nil {
		return configmap.Outcome{}, err
	}
	var gone []*v1.BCSNetPool
	for i := range list.Items {
		o := &list.Items[i]
		if !store.IsBlock(o) {
			continue
		}
		p.objects[o.Name] = o
		if addrs, _ := addrsOf(o); r.owns(o) && wanted[addrs].Namespace != ownerOf(o) {
			gone = append(gone, o)
		}
	}
	p.retire(ctx, gone) // first, because others may have their addresses now
	for _, b := range m.Blocks {
		if ctx.Err() != nil || edited() || len(p.failed) == maxFailures {
			break
		}
		if err := p.ensure(ctx, b); err != nil {
			p.failed = append(p.failed, err)
		}
	}
	p.compare(m)
	return configmap.Outcome{Done: p.done.String(), Waits: len(gone) > 0}, p.err()
}

// err returns the failures, or else the differences.
func (p *pass) err() error {
	if len(p.failed) > 0 {
		return errors.Join(p.failed...)
	}
	if n := len(p.differences); n > 0 {
		shown := p.differences[:min(n, humanize.MaxNamed)]
		text := strings.Join(shown, "; ")
		if n > len(shown) {
			text += fmt.Sprintf("; and %d more", n-len(shown))
		}
		return &configmap.Difference{Text: text}
	}
	return nil
}

func (p *pass) differs(format string, args ...any) {
	p.differences = append(p.differences, fmt.Sprintf(format, args...))
}

// owns reports whether a block was assigned because of the ConfigMap.
func (r *reconciler) owns(o *v1.BCSNetPool) bool {
	return o.Annotations[v1.HostnicConfigAnnotation] == r.From.String()
}

func isGone(o *v1.BCSNetPool) bool { return o.Annotations[v1.HostnicGoneAnnotation] != "" }

func ownerOf(o *v1.BCSNetPool) string {
	if len(o.Spec.Namespaces) != 1 {
		return ""
	}
	return o.Spec.Namespaces[0]
}

// ensure makes a block match the document. A namespace that has the block by other means, such as its pods' requests,
// keeps it: blocks that the document did not assign are not taken away.
func (p *pass) ensure(ctx context.Context, b hostnic.Block) error {
	if !b.Addrs.IsValid() {
		p.differs("subnet %s of namespace %s does not end in the CIDR of a block", b.Short(), b.Namespace)
		return nil
	}
	parent, known, ok := p.Index.Pools.BlockAt(b.Addrs)
	if !ok {
		p.differs("subnet %s of namespace %s: no pool is split into blocks of which %s is one", b.Short(), b.Namespace,
			b.Addrs)
		return nil
	}
	p.parents[parent] = struct{}{}
	if known.Name == "" {
		return p.give(ctx, parent, b)
	}
	switch o := p.objects[known.Name]; {
	case o == nil: // the index and the cache differ for a moment, and no event tells when they agree
		pools := v1.GroupVersion.WithResource(v1.PoolResource).GroupResource()
		return apierrors.NewConflict(pools, known.Name, errors.New("the cache and the index do not agree about it yet"))
	case !o.DeletionTimestamp.IsZero():
		p.differs("subnet %s of namespace %s: block %s is being deleted; it is created again when that is done",
			b.Short(),
			b.Namespace, o.Name)
		return nil
	case ownerOf(o) == b.Namespace:
		return p.keep(ctx, o, b)
	case p.owns(o):
		p.differs("subnet %s of namespace %s: block %s stays namespace %s's until its addresses are released",
			b.Short(), b.Namespace, o.Name, ownerOf(o))
		return nil
	default:
		p.differs("subnet %s of namespace %s: block %s belongs to namespace %s, and not by this ConfigMap; to take "+
			"it back: bcsnetctl pool delete %s", b.Short(), b.Namespace, o.Name, ownerOf(o), o.Name)
		return nil
	}
}

// keep updates a block that its namespace already has.
func (p *pass) keep(ctx context.Context, o *v1.BCSNetPool, b hostnic.Block) error {
	next := o.DeepCopy()
	p.mark(next, b)
	if o.Annotations[v1.HostnicConfigAnnotation] == "" { // it already belongs to its namespace, and stays so
		next.Annotations[v1.HostnicFoundAnnotation] = strconv.Itoa(int(o.Spec.Priority))
	}
	if isGone(next) { // the document has it again
		delete(next.Annotations, v1.HostnicGoneAnnotation)
		next.Spec.Cordoned = false
	}
	changed, err := configmap.Patch(ctx, p.client, o, next)
	if changed {
		p.done.changed = append(p.done.changed, o.Name)
	}
	return err
}

// give creates a block that does not exist.
func (p *pass) give(ctx context.Context, parent string, b hostnic.Block) error {
	made, err := p.Stocker.GiveBlock(ctx, parent, b.Namespace, b.Addrs, func(o *v1.BCSNetPool) { p.mark(o, b) })
	refusal, refused := errors.AsType[*ipam.Refusal](err)
	switch {
	case err == nil:
		p.done.given = append(p.done.given, made.Name+" to "+b.Namespace)
		return nil
	case refused && isStanding(refusal.Reason):
		p.differs("subnet %s of namespace %s: %s", b.Short(), b.Namespace, refusal.Message)
		return nil
	default:
		return fmt.Errorf("making block %s for namespace %s: %w", b.Addrs, b.Namespace, err)
	}
}

// isStanding reports whether a block is refused because of the state of pools, namespaces and leases, and not because
// the attempt failed.
func isStanding(r ipam.Reason) bool {
	switch r {
	case ipam.ReasonNoFreeBlock, ipam.ReasonAddressNotInPool, ipam.ReasonPoolCordoned, ipam.ReasonBadRequest,
		ipam.ReasonNotFound:
		return true
	default:
		return false
	}
}

// mark records on a block its ConfigMap, and its position in the list of its namespace.
func (r *reconciler) mark(o *v1.BCSNetPool, b hostnic.Block) {
	configmap.Mark(o, v1.SourceHostnic, v1.HostnicConfigAnnotation, r.From)
	o.Spec.Priority = b.Priority()
}

// leave restores a block that its namespace already had to its state before the document named it.
func (p *pass) leave(ctx context.Context, o *v1.BCSNetPool) error {
	next := o.DeepCopy()
	priority, _ := strconv.ParseInt(o.Annotations[v1.HostnicFoundAnnotation], 10, 32) // 0 where somebody has edited it
	next.Spec.Priority = int32(priority)
	delete(next.Labels, v1.SourceLabel)
	delete(next.Annotations, v1.HostnicConfigAnnotation)
	delete(next.Annotations, v1.HostnicFoundAnnotation)
	changed, err := configmap.Patch(ctx, p.client, o, next)
	if changed {
		p.done.changed = append(p.done.changed, o.Name)
	}
	if err == nil {
		p.objects[o.Name] = next
	}
	return err
}

// retire cordons blocks that the document no longer assigns to their namespaces, and takes back the ones without
// addresses in use. Blocks that it did not assign stay as they were. If an address is allocated in between, the
// deletion waits for it, like any deletion of a pool.
func (p *pass) retire(ctx context.Context, gone []*v1.BCSNetPool) {
	gone = slices.DeleteFunc(gone, func(o *v1.BCSNetPool) bool { return !o.DeletionTimestamp.IsZero() })
	if len(gone) == 0 {
		return
	}
	idle := map[string]ipam.IdleBlock{}
	for _, b := range p.Index.Pools.IdleBlocks(p.Now()) {
		idle[b.Block] = b
	}
	for _, o := range gone {
		if ctx.Err() != nil || len(p.failed) == maxFailures {
			return
		}
		if _, found := o.Annotations[v1.HostnicFoundAnnotation]; found {
			if err := p.leave(ctx, o); err != nil {
				p.failed = append(p.failed, err)
			}
			continue
		}
		next := o.DeepCopy()
		next.Annotations[v1.HostnicGoneAnnotation] = "true"
		next.Spec.Cordoned = true
		changed, err := configmap.Patch(ctx, p.client, o, next)
		if changed {
			p.done.cordoned = append(p.done.cordoned, o.Name+p.heldText(o.Name))
		}
		if b, ok := idle[o.Name]; ok && !changed && err == nil {
			var taken bool
			if taken, err = p.TakeBack(ctx, b); taken {
				p.done.deleted = append(p.done.deleted, o.Name)
			}
		}
		if err != nil {
			p.failed = append(p.failed, err)
		}
	}
}

// heldText describes what a block that will be deleted waits for.
func (r *reconciler) heldText(block string) string {
	c := r.Index.Pools.Counts(block, r.Now())
	if n := c.Active + c.Reserved; n > 0 {
		return fmt.Sprintf(" until %s in use or reserved %s released", humanize.Plural(n, "address"),
			humanize.OneOr(n, "is", "are"))
	}
	return ""
}
