package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	defaultPage = 500
	maxPage     = 5000
)

// filters and paging are the query parameters of the routes that answer a list.
func filters() []string {
	return []string{"containerID", "host", "owner", "podName", "podNamespace", "pool", "status"}
}
func paging() []string { return []string{"continue", "limit"} }

// list shows the addresses that have an object and match every filter of the query.
func (s *Service) list(r *http.Request, _ []byte) (any, string, error) {
	q := r.URL.Query()
	var host netip.Addr
	if h := q.Get("host"); h != "" {
		var err error
		if host, err = parseHost(h); err != nil {
			return nil, "", err
		}
	}
	status := q.Get("status")
	switch status {
	case "", ipam.Available.String(), ipam.Active.String(), ipam.Reserved.String():
	default:
		return nil, "", ipam.Refuse(ipam.ReasonBadRequest, "status %q is not Available, Active or Reserved", clip(status))
	}
	equal := func(filter, value string) bool { return filter == "" || filter == value }
	containerID, namespace, pod, pool, owner := q.Get("containerID"), q.Get("podNamespace"), q.Get("podName"), q.Get("pool"), q.Get("owner")
	match := func(l ipam.Lease) bool {
		return equal(containerID, l.ContainerID) && equal(namespace, l.Namespace) && equal(pod, l.PodName) &&
			equal(pool, l.Pool) && equal(owner, l.Owner) && equal(status, l.State.String()) &&
			(!host.IsValid() || l.Host == host)
	}
	var all []ipam.Lease
	switch { // by the index that leaves least to look at
	case containerID != "":
		all = s.Index.ByContainer(containerID, "")
	case host.IsValid():
		all = s.Index.ByHost(host)
	case pool != "":
		all = s.Index.ByPool(pool)
	default:
		return s.page(r, s.Index.Find(match))
	}
	return s.page(r, slices.DeleteFunc(all, func(l ipam.Lease) bool { return !match(l) }))
}

// page cuts a list by the query parameters limit and continue.
func (s *Service) page(r *http.Request, all []ipam.Lease) (any, string, error) {
	q := r.URL.Query()
	limit := defaultPage
	if v := q.Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxPage {
			return nil, "", ipam.Refuse(ipam.ReasonBadRequest, "limit %q is not a number from 1 to %d", clip(v), maxPage)
		}
		limit = n
	}
	out := LeaseList{Items: []Lease{}, Total: len(all)}
	var after netip.Addr
	if c := q.Get("continue"); c != "" {
		var err error
		if after, err = parseAddress(c); err != nil {
			return nil, "", err
		}
	}
	for _, l := range all {
		if after.IsValid() && !after.Less(l.Addr) {
			continue
		}
		if len(out.Items) == limit {
			out.Continue = out.Items[limit-1].IPAddr
			break
		}
		out.Items = append(out.Items, wireLease(l))
	}
	return out, "", nil
}

func (s *Service) inspectContainer(r *http.Request, _ []byte) (any, string, error) {
	return s.page(r, s.Index.ByContainer(r.PathValue("container"), r.URL.Query().Get("ifName")))
}

func (s *Service) inspectPod(r *http.Request, _ []byte) (any, string, error) {
	ns, name := r.PathValue("namespace"), r.PathValue("pod")
	return s.page(r, s.Index.Find(func(l ipam.Lease) bool { return l.Namespace == ns && l.PodName == name }))
}

func (s *Service) inspectHost(r *http.Request, _ []byte) (any, string, error) {
	host, err := parseHost(r.PathValue("host"))
	if err != nil {
		return nil, "", err
	}
	return s.page(r, s.Index.ByHost(host))
}

func (s *Service) inspectPool(r *http.Request, _ []byte) (any, string, error) {
	name := r.PathValue("pool")
	all := s.Index.ByPool(name)
	if _, ok := s.Index.Pool(name); !ok && len(all) == 0 {
		return nil, "", ipam.Refuse(ipam.ReasonNotFound, "there is no pool %s", clip(name)).WithHint("see: bcsnetctl pool list")
	}
	return s.page(r, all)
}

func (s *Service) inspectAddress(r *http.Request, _ []byte) (any, string, error) {
	addr, err := parseAddress(r.PathValue("address"))
	if err != nil {
		return nil, "", err
	}
	l, ok := s.Index.Get(addr)
	if ok {
		return wireLease(l), "", nil
	}
	name, ok := s.Index.PoolOf(addr)
	if !ok {
		return nil, "", ipam.Refuse(ipam.ReasonAddressNotInPool, "address %s is in no pool", addr).WithHint("see: bcsnetctl pool list")
	}
	p, _ := s.Index.Pool(name)
	return wireLease(ipam.Lease{Addr: addr, Params: p.Params()}), "", nil
}
