package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// bare is the first floor: a client that does nothing but the write, on an object that each caller has
// for itself. It writes through the same code as the controller, so object, encoding and identity are
// the same.
type bare struct {
	client *store.Client
	mu     sync.Mutex
	leases map[int]lease.Lease
	// next is the address of the next object that create makes.
	next netip.Addr
}

func newBare(cfg *rest.Config, next netip.Addr) (*bare, error) {
	c, err := store.New(cfg, nil, store.NewClock(nil))
	return &bare{client: c, leases: map[int]lease.Lease{}, next: next}, err
}

// prepare makes the objects, so that what is measured are updates.
func (b *bare) prepare(ctx context.Context, callers int) error {
	for i := range callers {
		addr := netip.AddrFrom4([4]byte{10, 255, 1, byte(i)})
		l, err := b.client.Get(ctx, addr)
		if err != nil {
			l, err = b.client.Write(ctx, lease.Lease{
				Addr: addr, Params: lease.Params{Pool: "floor", Bits: 16, Gateway: netip.MustParseAddr("10.255.0.1")},
			})
		}
		if err != nil {
			return err
		}
		b.leases[i] = l
	}
	return nil
}

func (b *bare) write(ctx context.Context, caller int, next lease.Lease, ok bool) error {
	if !ok {
		return fmt.Errorf("the floor's own lease cannot change")
	}
	stored, err := b.client.Write(ctx, next)
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.leases[caller] = stored
	b.mu.Unlock()
	return nil
}

func (b *bare) get(caller int) lease.Lease {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leases[caller]
}

func (b *bare) take(ctx context.Context, caller, n int) error {
	l := b.get(caller)
	next, ok := lease.Bind(l, l.Params, holder(caller, n), lease.Retention{}, b.client.Now())
	return b.write(ctx, caller, next, ok)
}

func (b *bare) free(ctx context.Context, caller, _ int) error {
	next, ok := lease.Release(b.get(caller), b.client.Now(), lease.Change{})
	return b.write(ctx, caller, next, ok)
}

// create makes the object of an address that nobody used before, held.
func (b *bare) create(ctx context.Context, caller, n int) error {
	b.mu.Lock()
	a := b.next
	b.next = a.Next()
	b.mu.Unlock()
	next, ok := lease.Bind(lease.Lease{Addr: a},
		lease.Params{Pool: "floor", Bits: 8, Gateway: netip.MustParseAddr("10.254.0.1")}, holder(caller, n),
		lease.Retention{}, b.client.Now())
	if !ok {
		return fmt.Errorf("a new lease cannot be bound")
	}
	_, err := b.client.Write(ctx, next)
	return err
}

// holder looks like the holder of a pod's address.
func holder(caller, n int) lease.Holder {
	return lease.Holder{
		Host: netip.MustParseAddr("10.0.0.11"), ContainerID: containerID("floor", caller, n), IfName: "eth0",
		Namespace: "bench", PodName: fmt.Sprintf("floor-7d4b9c6f5d-%05d", caller),
		PodUID: fmt.Sprintf("0b5fd196-789c-4dad-%04x-%012x", caller, n&0xffffffff),
	}
}

// handlerOptions are what the second and the third floor differ in.
type handlerOptions struct {
	kubeconfig string
	// next is the first address that the handler makes an object of.
	next netip.Addr
	// informer keeps a plain cache of all BCSNetIPs beside the handler: the third floor.
	informer bool
}

// serveFloor runs the second floor: an HTTP server in a process of its own that decodes the request, does the write
// of the bare client and answers. With an informer it is the third floor: whoever keeps a cache of the objects makes
// the API server encode each change once more, and decodes it.
func serveFloor(ctx context.Context, o handlerOptions) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return err
	}
	if o.informer {
		if err := startInformer(ctx, cfg, &v1.BCSNetIP{}); err != nil {
			return err
		}
	}
	b, err := newBare(cfg, o.next)
	if err != nil {
		return err
	}
	if err := b.prepare(ctx, maxCallers); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in floorRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &in)
		}
		switch {
		case err != nil:
		case r.Method == http.MethodPost:
			err = b.take(r.Context(), in.Caller, in.N)
		case r.Method == http.MethodPut:
			err = b.create(r.Context(), in.Caller, in.N)
		default:
			err = b.free(r.Context(), in.Caller, in.N)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"code": 0, "result": true, "data": in})
	})}
	go func() { <-ctx.Done(); _ = server.Close() }()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// startInformer starts a cache of a kind of objects as a controller has one, and waits until it is filled.
func startInformer(ctx context.Context, cfg *rest.Config, of client.Object) error {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		return err
	}
	all, err := cache.New(cfg, cache.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	informer, err := all.GetInformer(ctx, of, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- all.Start(ctx) }()
	for !informer.HasSynced() {
		select {
		case err := <-failed:
			return errors.Join(err, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

type floorRequest struct {
	Caller      int    `json:"caller"`
	N           int    `json:"n"`
	Host        string `json:"host"`
	ContainerID string `json:"containerID"`
}

// floorClient calls the second floor.
type floorClient struct {
	http *http.Client
	url  string
}

func (f floorClient) call(ctx context.Context, method string, caller, n int) error {
	body, err := json.Marshal(floorRequest{
		Caller: caller, N: n, Host: "10.0.0.11", ContainerID: containerID("floor", caller, n),
	})
	if err != nil {
		return err
	}
	_, err = send(ctx, f.http, method, f.url, body)
	return err
}

func send(ctx context.Context, c *http.Client, method, url string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, answer)
	}
	return answer, err
}
