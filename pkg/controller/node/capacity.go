package node

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bcsnet/bcsnet/pkg/controller/leadership"
	"github.com/bcsnet/bcsnet/pkg/hosts"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/scheduling"
)

// Rates at which the numbers of nodes are published. An allocation changes the number of every node of its pool. These
// bounds limit the writes, whatever happens to the pools.
const (
	// capacityLook is the interval in which the leader checks whether a number has changed.
	capacityLook = 250 * time.Millisecond
	// capacityEvery is the minimum time between two patches of one node, because all watchers of nodes get each patch.
	// It is capacityFew if few addresses are left, and capacityEdge if the node's pools have become full or have
	// addresses again.
	capacityEvery, capacityFew, capacityEdge = time.Minute, 10 * time.Second, time.Second
	// fewLeft is the number of remaining addresses that count as few. A larger number makes no difference to a
	// scheduler within some seconds, because a node takes 110 pods by default.
	fewLeft = 256
	// capacityRate is the number of nodes patched per second; capacityEdgeRate is that of nodes whose pools have become
	// full or have addresses again.
	capacityRate, capacityEdgeRate = 10, 100
	// parallelPatches bounds the patches in progress.
	parallelPatches = 8
)

// Capacity publishes on every node, as extended resources, the number of pods for which there are addresses: free ones
// in the node's pools, and those of pods on the node. It runs on the leader. All its state is on the nodes.
type Capacity struct {
	client    client.Client
	index     *index.Index
	resources scheduling.Resources
	// now returns the API server's time, by which addresses cool down; clock returns this machine's.
	now, clock func() time.Time
	ready      func() error
	patches    *prometheus.CounterVec
	log        *slog.Logger
	troubles   rate.Sometimes

	usual, edges *rate.Limiter

	mu    sync.Mutex
	nodes map[string]*nodeCapacity
	// hosts has the nodes by address; dirty has the addresses of hosts whose leases have changed.
	hosts map[netip.Addr]map[*nodeCapacity]struct{}
	dirty map[netip.Addr]struct{}
	plans uint64
	// stirred reports whether something has changed since due last ran, at the time looked, or whether some nodes had
	// to wait.
	stirred bool
	looked  time.Time
}

// Config has the dependencies of Capacity.
type Config struct {
	Client    client.Client
	Index     *index.Index
	Resources scheduling.Resources
	// Now returns the API server's time.
	Now      func() time.Time
	Ready    func() error
	Registry prometheus.Registerer
	Log      *slog.Logger
}

// NewCapacity returns a Capacity without nodes, and registers its metrics.
func NewCapacity(o Config) *Capacity {
	p := &Capacity{
		client: o.Client, index: o.Index, resources: o.Resources, now: o.Now, clock: time.Now, ready: o.Ready,
		log:      o.Log,
		troubles: rate.Sometimes{Interval: time.Minute},
		usual:    rate.NewLimiter(capacityRate, capacityRate), edges: rate.NewLimiter(capacityEdgeRate,
			capacityEdgeRate),
		nodes: map[string]*nodeCapacity{}, hosts: map[netip.Addr]map[*nodeCapacity]struct{}{},
		dirty: map[netip.Addr]struct{}{},
		patches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "bcsnet_node_patches_total",
			Help: "Patches of the resources that nodes publish: edge, because the node's pools became full or have " +
				"addresses again, change, or failed.",
		}, []string{"result"}),
	}
	for _, result := range []string{patchChange, patchEdge, patchFailed} {
		p.patches.WithLabelValues(result)
	}
	o.Registry.MustRegister(p.patches)
	return p
}

// Values of the label result.
const (
	patchChange = "change"
	patchEdge   = "edge"
	patchFailed = "failed"
)

// Set records a node from the cache.
func (c *Capacity) Set(o *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.nodes[o.Name]
	if n == nil || n.uid != o.UID {
		c.forget(n)
		n = &nodeCapacity{name: o.Name, uid: o.UID}
		c.nodes[o.Name] = n
	}
	if addrs := hosts.Of(o).Addrs; !slices.Equal(n.addrs, addrs) {
		c.unlist(n)
		n.addrs, n.fresh = addrs, false
		for _, a := range addrs {
			if c.hosts[a] == nil {
				c.hosts[a] = map[*nodeCapacity]struct{}{}
			}
			c.hosts[a][n] = struct{}{}
		}
	}
	n.see(o, c.resources)
	c.stirred = true
}

// Remove forgets a node.
func (c *Capacity) Remove(o *corev1.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(c.nodes[o.Name])
	delete(c.nodes, o.Name)
}

func (c *Capacity) forget(n *nodeCapacity) {
	if n != nil {
		c.unlist(n)
	}
}

func (c *Capacity) unlist(n *nodeCapacity) {
	for _, a := range n.addrs {
		if delete(c.hosts[a], n); len(c.hosts[a]) == 0 {
			delete(c.hosts, a)
		}
	}
}

// LeaseChanged records the hosts on which a lease began or ended.
func (c *Capacity) LeaseChanged(old, new lease.Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stirred = true
	for _, l := range []lease.Lease{old, new} {
		if _, node := c.hosts[l.Host]; node {
			c.dirty[l.Host] = struct{}{}
		}
	}
}

// Start publishes until the context ends, that is for a term of the leader.
func (c *Capacity) Start(ctx context.Context) error {
	if !leadership.AwaitReady(ctx, c.ready) {
		return nil
	}
	c.mu.Lock()
	for _, n := range c.nodes {
		n.fresh, n.known, n.version = false, false, "" // the store may have been restored
	}
	c.stirred = true
	c.mu.Unlock()
	leadership.Every(ctx, capacityLook, func() {
		if c.ready() == nil {
			c.pass(ctx)
		}
	})
	return nil
}

// pass writes the patches that are due.
func (c *Capacity) pass(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(parallelPatches)
	for _, p := range c.due() {
		group.Go(func() error {
			c.write(ctx, p)
			return nil
		})
	}
	_ = group.Wait() // the goroutines return no errors
}

// due returns the patches whose time has come: edges first, then the nodes that were patched least recently.
func (c *Capacity) due() (patches []nodePatch) {
	now := c.clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	// Addresses whose cooldown has ended become free without an event.
	if !c.stirred && c.index.Pools.PlansRevision() == c.plans && now.Sub(c.looked) < capacityFew {
		return nil
	}
	c.stirred, c.looked = false, now
	c.recount()
	spares, rooms := c.index.Headrooms(c.now()), map[string]uint64{}
	var waiting []*nodeCapacity
	for _, n := range c.nodes {
		room, ok := rooms[n.kind]
		switch {
		case n.held != nil:
			room = n.room(spares)
		case !ok:
			room = n.room(spares)
			rooms[n.kind] = room
		}
		if n.left = room; n.differs(c.resources) {
			waiting = append(waiting, n)
		} else {
			n.agree()
		}
	}
	slices.SortFunc(waiting, urgency)
	for _, n := range waiting {
		if c.stirred = true; now.Before(n.notBefore()) {
			continue
		}
		limit := c.usual
		if n.edge() {
			limit = c.edges
		}
		if limit.AllowN(now, 1) {
			patches = append(patches, n.patch(c.resources, now))
		}
	}
	return patches
}

// recount updates the pools from which nodes draw, and the numbers of pods that hold addresses on them, if these have
// changed.
func (c *Capacity) recount() {
	if plans := c.index.Pools.PlansRevision(); plans != c.plans {
		c.plans = plans
		for _, n := range c.nodes {
			n.fresh = false
		}
	}
	for h := range c.dirty {
		for n := range c.hosts[h] {
			n.count(c.index)
		}
	}
	clear(c.dirty)
	for _, n := range c.nodes {
		if n.fresh {
			continue
		}
		n.pools = nil
		for _, a := range n.addrs {
			for _, p := range c.index.Pools.PoolsOf(a) {
				if !slices.Contains(n.pools, p) {
					n.pools = append(n.pools, p)
				}
			}
		}
		n.kind = strings.Join(n.pools, ",")
		n.count(c.index)
		n.fresh = true
	}
}

// write patches a node. A deleted node is skipped. A failed patch is repeated when the node may be patched again.
func (c *Capacity) write(ctx context.Context, p nodePatch) {
	o := &corev1.Node{}
	o.Name = p.node.name
	limited, cancel := context.WithTimeout(ctx, capacityFew)
	defer cancel()
	err := c.client.SubResource("status").Patch(limited, o, p.body(), client.FieldOwner(capacityManager))
	result := patchChange
	switch {
	case ctx.Err() != nil, client.IgnoreNotFound(err) == nil && err != nil:
		return
	case err != nil:
		result = patchFailed
		c.troubles.Do(func() {
			c.log.Warn("the addresses for a node cannot be published", "node", p.node.name, "error", err)
		})
	case p.edge:
		result = patchEdge
	}
	c.patches.WithLabelValues(result).Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.node.failed = err != nil; p.node.failed {
		return
	}
	if c.nodes[p.node.name] == p.node {
		p.node.full, p.node.few, p.node.known = p.full, p.few, true
		p.node.see(Trim(o, c.resources), c.resources)
	}
}
