package httpapi

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/bcsnet/bcsnet/pkg/explain"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const (
	defaultPage = 500
	maxPage     = 5000
)

// filters and paging return the query parameters of the routes that answer a list.
func filters() []string {
	return []string{"containerID", "host", "owner", "podName", "podNamespace", "pool", "status"}
}
func paging() []string { return []string{"continue", "limit"} }

// list returns the addresses that have an object and match every filter of the query.
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
	case "", lease.Available.String(), lease.Active.String(), lease.Reserved.String():
	default:
		return nil, "", ipam.Refuse(ipam.ReasonBadRequest, "status %q is not Available, Active or Reserved",
			clip(status))
	}
	out, err := s.page(r, index.Filter{
		ContainerID: q.Get("containerID"), Namespace: q.Get("podNamespace"), PodName: q.Get("podName"),
		Owner: q.Get("owner"),
		Pool:  q.Get("pool"), Status: status, Host: host,
	})
	return out, "", err
}

func readLimit(q url.Values) (int, error) {
	v := q.Get("limit")
	if v == "" {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxPage {
		return 0, ipam.Refuse(ipam.ReasonBadRequest, "limit %q is not a number from 1 to %d", clip(v), maxPage)
	}
	return n, nil
}

// pageRows returns the largest number of rows in the answer to a query; 0 if the query is invalid.
func pageRows(query string) int {
	q, _ := url.ParseQuery(query) // as in URL.Query
	limit, _ := readLimit(q)
	return limit
}

// page returns a part of a list, by the query parameters limit and continue.
func (s *Service) page(r *http.Request, f index.Filter) (out wire.LeaseList, err error) {
	q := r.URL.Query()
	limit, err := readLimit(q)
	if err != nil {
		return out, err
	}
	var after netip.Addr
	if c := q.Get("continue"); c != "" {
		if after, err = parseAddress(c); err != nil {
			return out, err
		}
	}
	f.OnHosts = forwardingOf(r).by.Hosts
	leases, total, more := s.options.Index.Leases.Page(f, after, limit)
	out = wire.LeaseList{Items: make([]wire.Lease, 0, len(leases)), Total: total}
	for _, l := range leases {
		out.Items = append(out.Items, wireLease(l))
	}
	if more {
		out.Continue = out.Items[len(out.Items)-1].IPAddr
	}
	return out, nil
}

func (s *Service) inspectContainer(r *http.Request, _ []byte) (any, string, error) {
	out, err := s.page(r, index.Filter{ContainerID: r.PathValue("container"), IfName: r.URL.Query().Get("ifName")})
	return out, "", err
}

func (s *Service) inspectPod(r *http.Request, _ []byte) (any, string, error) {
	out, err := s.page(r, index.Filter{Namespace: r.PathValue("namespace"), PodName: r.PathValue("pod")})
	return out, "", err
}

func (s *Service) inspectHost(r *http.Request, _ []byte) (any, string, error) {
	host, err := parseHost(r.PathValue("host"))
	if err != nil {
		return nil, "", err
	}
	out, err := s.page(r, index.Filter{Host: host})
	return out, "", err
}

func (s *Service) inspectPool(r *http.Request, _ []byte) (any, string, error) {
	name := r.PathValue("pool")
	out, err := s.page(r, index.Filter{Pool: name})
	if _, ok := s.options.Index.Pools.Get(name); err == nil && !ok && out.Total == 0 {
		err = ipam.RefuseFacts(ipam.ReasonNotFound, explain.Facts{Kind: explain.NoSuchPool, Pool: clip(name)})
	}
	return out, "", err
}

func (s *Service) inspectAddress(r *http.Request, _ []byte) (any, string, error) {
	addr, err := parseAddress(r.PathValue("address"))
	if err != nil {
		return nil, "", err
	}
	l, ok := s.options.Index.Leases.Get(addr)
	if ok {
		return wireLease(l), "", nil
	}
	name, ok := s.options.Index.Pools.PoolOf(addr)
	if !ok {
		return nil, "", ipam.RefuseFacts(ipam.ReasonAddressNotInPool,
			explain.Facts{Kind: explain.AddressInNoPool, Address: addr})
	}
	p, _ := s.options.Index.Pools.Get(name)
	return wireLease(lease.Lease{Addr: addr, Params: p.Params()}), "", nil
}
