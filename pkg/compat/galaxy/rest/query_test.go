package rest

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
)

func TestParseQuery(t *testing.T) {
	byIP := order{field: "ip"}
	for raw, want := range map[string]query{
		"": {size: 10, order: byIP},
		"namespace=default&appName=nginx-deployment&appType=tapp": {namespace: "default", appName: "nginx-deployment", appType: "tapp", size: 10, order: byIP},
		"appType=StatefulSets&podName=+web-0+&poolName=a%20b":     {appType: "statefulset", podName: "web-0", poolName: "a b", size: 10, order: byIP},
		"isDeployment=false&isDeployment=x&_=1":                   {isDeploymentSet: true, size: 10, order: byIP},
		"isDeployment=1&keyword=10.0.70":                          {isDeployment: true, isDeploymentSet: true, keyword: "10.0.70", size: 10, order: byIP},
		"page=-1&size=-5":                                         {size: 10, order: byIP},
		"page=7&size=0":                                           {page: 7, size: 10, order: byIP},
		"page=100000&size=10000":                                  {page: 99999, size: 9999, order: byIP},
		"page=99999999999999999999&size=99999999999999999999":     {page: 99999, size: 9999, order: byIP},
		"page=-99999999999999999999":                              {size: 10, order: byIP},
		"sort=ip+desc":                                            {size: 10, order: order{"ip", true}},
		"sort=IP-Numeric":                                         {size: 10, order: order{"ip-numeric", false}},
		"sort=podname%20%20ASC":                                   {size: 10, order: order{"podname", false}},
	} {
		got, err := parseQuery(raw)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(query{}, order{})); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", raw, err, diff)
		}
	}
	for raw, want := range map[string]string{
		"page=first":                       `page "first" is not a number`,
		"size=1e3":                         `size "1e3" is not a number`,
		"size=" + strings.Repeat("x", 300): `size "` + strings.Repeat("x", 100) + `" is not a number`,
		"isDeployment=maybe":               `isDeployment "maybe" is neither true nor false`,
		"sort=updateTime":                  `sort "updateTime" is not one of ip, ip-numeric, namespace, podname and policy, with asc or desc behind it`,
		"sort=ip+down":                     `sort "ip down" is not one of ip, ip-numeric, namespace, podname and policy, with asc or desc behind it`,
		"sort=ip+asc+desc":                 `sort "ip asc desc" is not one of ip, ip-numeric, namespace, podname and policy, with asc or desc behind it`,
		"appName=%zz":                      `the query cannot be read: invalid URL escape "%zz"`,
	} {
		_, err := parseQuery(raw)
		refusal, ok := errors.AsType[*ipam.Refusal](err)
		if !ok || refusal.Message != want || StatusOf(refusal) != 400 {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func held(ip, namespace, app, kind, pod, pool string, policy int) *row {
	return &row{
		FloatingIP: FloatingIP{
			IP: ip, Namespace: namespace, AppName: app, AppType: kind, PodName: pod, PoolName: pool, Policy: policy,
			IsDeployment: kind == deployment,
		},
		addr: netip.MustParseAddr(ip), anybody: kind == deployment || pool != "",
	}
}

func rows() []*row {
	vm := held("10.0.70.5", "", "", "", "", "", 0)
	vm.owner = "vm-build-7"
	return []*row{
		held("10.0.70.33", "default", "nginx", "tapp", "nginx-0", "", 2),
		held("10.0.70.142", "default", "nginx", "tapp", "nginx-2", "", 2),
		held("10.0.70.169", "default", "nginx", "deployment", "nginx-abc-xyz", "", 1),
		held("10.0.9.1", "shop", "db", "statefulset", "db-0", "", 0),
		held("10.0.70.7", "shop", "blue", "deployment", "blue-1", "payments", 2), vm,
	}
}

func TestMatch(t *testing.T) {
	for raw, want := range map[string]string{
		"":                               "33 142 169 1 7 5",
		"namespace=default":              "33 142 169",
		"namespace=default&appType=tapp": "33 142",
		"appName=nginx&appType=tapp&podName=nginx-2": "142",
		"appName=ngin":                          "", // exact
		"poolName=payments":                     "7",
		"poolName=payments&namespace=default":   "",
		"isDeployment=true":                     "169 7",
		"isDeployment=false":                    "1",
		"isDeployment=false&appType=tapp":       "33 142",
		"isDeployment=false&appType=deployment": "",
		"isDeployment=true&appType=tapp":        "",
		"keyword=.70.1":                         "142 169",
		"keyword=pay":                           "7",
		"keyword=build":                         "5",
		"keyword=shop%2Fdb":                     "1",
		"keyword=nginx&namespace=shop":          "33 142 169", // it overrides the filters
		"keyword=Nginx":                         "",
	} {
		q, err := parseQuery(raw)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows() {
			if q.matchesHolder(r) && (!q.needsApp() || q.matchesApp(r)) {
				got = append(got, r.IP[strings.LastIndex(r.IP, ".")+1:])
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}

func TestOrder(t *testing.T) {
	for sort, want := range map[string]string{
		"":                "142 169 33 5 7 1",
		"ip desc":         "1 7 5 33 169 142",
		"ip-numeric":      "1 5 7 33 142 169",
		"ip-numeric desc": "169 142 33 7 5 1",
		"namespace":       "5 142 169 33 7 1",
		"namespace desc":  "7 1 142 169 33 5",
		"podname asc":     "5 7 1 33 142 169",
		"podname desc":    "169 142 33 1 7 5",
		"policy":          "5 1 169 142 33 7",
		"policy desc":     "142 33 7 169 5 1",
	} {
		q, err := parseQuery("sort=" + url.QueryEscape(sort))
		if err != nil {
			t.Fatal(err)
		}
		all := keys()
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		slices.SortFunc(all, q.order.compare)
		got := make([]string, 0, len(all))
		for _, k := range all {
			got = append(got, k.ip[strings.LastIndex(k.ip, ".")+1:])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", sort, got, want)
		}
	}
}

// keys are those of the rows.
func keys() (all []*key) {
	for _, r := range rows() {
		all = append(all, new(r.key(index.Entry{})))
	}
	return all
}

func TestPages(t *testing.T) {
	for _, c := range []struct {
		raw   string
		n     int
		page  Page
		start int
	}{
		{"", 0, Page{Last: true, First: true, Size: 10}, 0},
		{"", 3, Page{Last: true, First: true, TotalElements: 3, TotalPages: 1, NumberOfElements: 3, Size: 10}, 0},
		{"", 10, Page{Last: true, First: true, TotalElements: 10, TotalPages: 1, NumberOfElements: 10, Size: 10}, 0},
		{"", 11, Page{First: true, TotalElements: 11, TotalPages: 2, NumberOfElements: 10, Size: 10}, 0},
		{"page=1", 11, Page{Last: true, TotalElements: 11, TotalPages: 2, NumberOfElements: 1, Size: 10, Number: 1}, 10},
		{"page=1&size=2", 5, Page{TotalElements: 5, TotalPages: 3, NumberOfElements: 2, Size: 2, Number: 1}, 2},
		{"page=100000&size=10000", 65536, Page{Last: true, TotalElements: 65536, TotalPages: 7, Size: 9999, Number: 99999}, 65536},
		{"page=6&size=9999", 65536, Page{Last: true, TotalElements: 65536, TotalPages: 7, NumberOfElements: 5542, Size: 9999, Number: 6}, 59994},
	} {
		q, err := parseQuery(c.raw)
		if err != nil {
			t.Fatal(err)
		}
		got, start, end := q.cut(c.n)
		if diff := cmp.Diff(c.page, got); diff != "" || start != c.start || end != start+got.NumberOfElements {
			t.Errorf("%s of %d: from %d to %d (-want +got):\n%s", c.raw, c.n, start, end, diff)
		}
	}
}

// FuzzQuery: any query is refused as wrong, or asks for a page within bounds that can be sorted.
func FuzzQuery(f *testing.F) {
	for _, raw := range []string{
		"", "page=1&size=2&sort=ip+desc", "keyword=%2f&isDeployment=t", "size=-9223372036854775809", "a;b=%zz", "sort=policy%20desc",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		q, err := parseQuery(raw)
		if refusal, ok := errors.AsType[*ipam.Refusal](err); err != nil && (!ok || StatusOf(refusal) != 400) {
			t.Fatalf("%q: %v", raw, err)
		}
		if err != nil {
			return
		}
		all := keys()
		slices.SortFunc(all, q.order.compare)
		p, start, end := q.cut(len(all))
		if p.Size < 1 || p.Size > MaxSize || p.Number < 0 || p.Number > MaxPage || start < 0 || end < start ||
			end > len(all) || p.NumberOfElements != end-start {
			t.Errorf("%q: %+v from %d to %d", raw, p, start, end)
		}
		for _, r := range rows() {
			_ = q.matchesHolder(r) && q.matchesApp(r)
		}
	})
}
