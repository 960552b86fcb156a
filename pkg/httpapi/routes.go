package httpapi

import (
	"net/http"
	"slices"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// routes returns the operations of the allocator. The routes of galaxy and of the scheduler are in their own files.
func (s *Service) routes() []route {
	return []route{
		{
			http.MethodPost, wire.Prefix, "allocate", nil, true, true, permission{"create", allocations, byHost,
				ofSubject}, nil,
			s.allocate, nil,
		},
		{
			http.MethodDelete, wire.Prefix, "release", nil, true, true,
			permission{"delete", allocations, byHost, ofSubject}, nil, s.release, s.releaseFrees,
		},
		{
			http.MethodDelete, wire.Prefix + "/host/{host}", "releaseHost", nil, false, true,
			permission{"create", hostReleases, byHost, everywhere}, nil, s.releaseHost, nil,
		},
		{
			http.MethodDelete, wire.Prefix + "/ip/{address}", "releaseAddress", nil, true, true,
			permission{"delete", allocations, byLease, everywhere}, nil, s.releaseAddress, s.releaseAddressFrees,
		},
		{
			http.MethodPost, wire.Prefix + "/gc", collectNetwork, nil, true, true,
			permission{"create", collections, byHost, everywhere}, nil, s.collectNetwork, nil,
		},
		{
			http.MethodPost, wire.Prefix + "/ip/{address}/conflict", "reportConflict", nil, true, true,
			permission{"create", conflicts, byLease, everywhere}, nil, s.reportConflict, nil,
		},
		{
			http.MethodGet, wire.Prefix, "list", slices.Concat(filters(), paging()), false, false,
			permission{"list", allocations, byLease, ofSubject}, pageRows, s.list, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/container/{container}", "inspectContainer",
			slices.Concat([]string{"ifName"}, paging()),
			false, false, permission{"list", allocations, byLease, everywhere}, nil, s.inspectContainer, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/pod/{namespace}/{pod}", "inspectPod", paging(), false, false,
			permission{"list", allocations, byLease, ofSubject}, pageRows, s.inspectPod, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/host/{host}", "inspectHost", paging(), false, false,
			permission{"list", allocations, byHost, everywhere}, pageRows, s.inspectHost, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/pool/{pool}", "inspectPool", paging(), false, false,
			permission{"list", allocations, byLease, everywhere}, pageRows, s.inspectPool, nil,
		},
		{
			http.MethodGet, wire.Prefix + "/ip/{address}", "inspectAddress", nil, false, false,
			permission{"get", allocations, byNobody, everywhere}, nil, s.inspectAddress, nil,
		},
	}
}
