package rest

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Bounds of pages.
const (
	DefaultSize = 10
	MaxSize     = 9999
	MaxPage     = 99999
)

// Parameters returns the query parameters of GET /v1/ip.
func Parameters() []string {
	return []string{
		"keyword", "poolName", "appName", "podName", "namespace", "isDeployment", "appType", "page", "size", "sort",
	}
}

// query is the parsed query of a list. Empty fields match everything.
type query struct {
	keyword                                        string
	poolName, appName, podName, namespace, appType string
	// isDeployment is valid only if isDeploymentSet is true: the query has the parameter.
	isDeployment, isDeploymentSet bool
	page, size                    int
	order                         order
}

// parseQuery parses a query. As in galaxy, the first of repeated parameters counts, and unknown ones are ignored:
// galaxy's pages add their own.
func parseQuery(raw string) (q query, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, ipam.Refuse(ipam.ReasonBadRequest, "the query cannot be read: %v", err)
	}
	get := func(name string) string { return strings.TrimSpace(values.Get(name)) }
	q = query{
		keyword: get("keyword"), poolName: get("poolName"), appName: get("appName"), podName: get("podName"),
		namespace: get("namespace"), appType: appType(get("appType")),
	}
	if text := get("isDeployment"); text != "" {
		if q.isDeployment, err = strconv.ParseBool(text); err != nil {
			return q, ipam.Refuse(ipam.ReasonBadRequest, "isDeployment %.100q is neither true nor false", text)
		}
		q.isDeploymentSet = true
	}
	if q.page, err = number("page", get("page")); err != nil {
		return q, err
	}
	if q.size, err = number("size", get("size")); err != nil {
		return q, err
	}
	q.page = min(max(q.page, 0), MaxPage)
	if q.size <= 0 {
		q.size = DefaultSize
	}
	q.size = min(q.size, MaxSize)
	q.order, err = parseOrder(get("sort"))
	return q, err
}

// number parses a number of any size. One that is too large for int becomes the largest int. Empty text is 0.
func number(name, text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, ipam.Refuse(ipam.ReasonBadRequest, "%s %.100q is not a number", name, text)
	}
	return n, nil
}

// appType returns galaxy's name of a kind, however the kind is spelt.
func appType(kind string) string {
	kind = strings.ToLower(kind)
	if kind == "statefulsets" { // galaxy accepts it
		return statefulSet
	}
	return kind
}

const (
	deployment  = "deployment"
	statefulSet = "statefulset"
)

// needsApp reports whether the query depends on the workload of an address, which takes longest to find.
func (q *query) needsApp() bool {
	return q.keyword != "" || q.appName != "" || q.appType != "" || q.isDeploymentSet
}

// matchesHolder reports whether an address matches the query, apart from its workload.
func (q *query) matchesHolder(r *row) bool {
	if q.keyword != "" {
		return true // the workload may still match
	}
	equal := func(filter, value string) bool { return filter == "" || filter == value }
	return equal(q.poolName, r.PoolName) && equal(q.podName, r.PodName) && equal(q.namespace, r.Namespace)
}

// matchesApp reports whether the workload of an address matches.
func (q *query) matchesApp(r *row) bool {
	if q.keyword != "" {
		has := func(text string) bool { return strings.Contains(text, q.keyword) }
		return has(r.IP) || has(r.PoolName) || has(r.owner) || has(r.Namespace+"/"+r.AppName) ||
			has(r.Namespace+"/"+r.PodName)
	}
	if q.appName != "" && q.appName != r.AppName || q.appType != "" && q.appType != r.AppType {
		return false
	}
	switch {
	case !q.isDeploymentSet:
		return true
	case q.isDeployment:
		return r.AppType == deployment
	case q.appType == "": // one of the two kinds that it distinguishes
		return r.AppType == statefulSet
	default:
		return r.AppType != deployment
	}
}

// order is the order of a list.
type order struct {
	field      string
	descending bool
}

func parseOrder(text string) (o order, err error) {
	words := strings.Fields(strings.ToLower(text))
	switch {
	case len(words) == 0:
		return order{field: "ip"}, nil
	case !slices.Contains([]string{"ip", "ip-numeric", "namespace", "podname", "policy"}, words[0]), len(words) > 2,
		len(words) == 2 && words[1] != "asc" && words[1] != "desc":
		return o, ipam.Refuse(ipam.ReasonBadRequest,
			"sort %.100q is not one of ip, ip-numeric, namespace, podname and policy, with asc or desc behind it", text)
	}
	return order{words[0], len(words) == 2 && words[1] == "desc"}, nil
}

// compare compares two addresses; those with equal fields are ordered by their text.
func (o order) compare(a, b *key) (n int) {
	switch o.field {
	case "ip-numeric":
		n = a.addr.Compare(b.addr)
	case "namespace":
		n = strings.Compare(a.namespace, b.namespace)
	case "podname":
		n = strings.Compare(a.podName, b.podName)
	case "policy":
		n = cmp.Compare(a.policy, b.policy)
	default:
		n = strings.Compare(a.ip, b.ip)
	}
	switch {
	case n == 0:
		return strings.Compare(a.ip, b.ip)
	case o.descending:
		return -n
	default:
		return n
	}
}

// cut returns the page of a query out of n elements, from start up to but not including end.
func (q *query) cut(n int) (p Page, start, end int) {
	start = min(q.page*q.size, n) // at most 10^9
	end = min(start+q.size, n)
	return Page{
		Last: end >= n, First: q.page == 0, TotalElements: n, TotalPages: (n + q.size - 1) / q.size,
		NumberOfElements: end - start, Size: q.size, Number: q.page,
	}, start, end
}
