package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

func lease(name, podNamespace, podName string) *v1.BCSNetIP {
	return address(name, func(o *v1.BCSNetIP) {
		o.Status = v1.BCSNetIPStatus{
			Status: v1.IPActive, Host: "10.0.0.11", ContainerID: "c-" + podName, IfName: "eth0", CNINetwork: "pods",
			PodNamespace: podNamespace, PodName: podName,
			UpdateTime: time.Now().UTC().Format(time.RFC3339Nano),
			Given:      &v1.GivenSettings{Gateway: "10.0.0.9"}, GivenTo: "c-" + podName,
		}
	})
}

func TestFieldSelectors(t *testing.T) {
	c := connect(t)
	other := address("10.0.9.40", func(o *v1.BCSNetIP) {
		o.Spec.Pool = "10.0.9.0"
		o.Status = v1.BCSNetIPStatus{Status: v1.IPActive, Host: "10.0.0.12", Owner: "vm-7"}
	})
	for _, ip := range []*v1.BCSNetIP{
		lease("10.0.0.20", "web", "a"), lease("10.0.0.21", "db", "a"), lease("10.0.0.22", "web", "b"),
		address("10.0.0.23"), other,
	} {
		create(t, c, ip)
	}
	blue, red := pool(network("blue")), pool(network("red"))
	blue.Name, red.Name = "blue", "red"
	create(t, c, blue)
	create(t, c, red)

	tests := map[string]struct{ resource, selector, want string }{
		"pool":               {"bnip", "spec.pool=10.0.9.0", "10.0.9.40"},
		"status":             {"bnip", "status.status=Available", "10.0.0.23"},
		"host":               {"bnip", "status.host=10.0.0.11", "10.0.0.20 10.0.0.21 10.0.0.22"},
		"pod":                {"bnip", "status.podNamespace=web,status.podName=a", "10.0.0.20"},
		"namespace":          {"bnip", "status.podNamespace=web", "10.0.0.20 10.0.0.22"},
		"container":          {"bnip", "status.containerID=c-b", "10.0.0.22"},
		"owner":              {"bnip", "status.owner=vm-7", "10.0.9.40"},
		"every owner":        {"bnip", "status.owner!=", "10.0.9.40"},
		"all but one status": {"bnip", "status.status!=Active", "10.0.0.23"},
		"network":            {"bnp", "spec.network=red", "red"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := kubectl(t, "get", tt.resource, "--field-selector", tt.selector, "-o",
				"jsonpath={.items[*].metadata.name}")
			if err != nil || got != tt.want {
				t.Errorf("%s = %q, %v; want %q", tt.selector, got, err, tt.want)
			}
		})
	}

	out, err := kubectl(t, "get", "bnip", "--field-selector", "spec.mask=24")
	if err == nil || !strings.Contains(out, "field label not supported: spec.mask") {
		t.Errorf("selecting by another field: %v, %s", err, out)
	}
	watchSelected(t, c, "10.0.0.11")
}

// watchSelected checks that a watch by field sees an address come and go.
func watchSelected(t *testing.T, c client.Client, host string) {
	t.Helper()
	w, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: c.Scheme(), HTTPClient: httpClient(t)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events, err := w.Watch(ctx, &v1.BCSNetIPList{}, client.MatchingFields{"status.host": host},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	seen := map[string]string{}
	for len(seen) < 3 {
		e, open := <-events.ResultChan()
		if !open {
			t.Fatalf("the watch ended after %v", seen)
		}
		seen[e.Object.(*v1.BCSNetIP).Name] = string(e.Type)
	}
	if diff := cmp.Diff(map[string]string{"10.0.0.20": "ADDED", "10.0.0.21": "ADDED", "10.0.0.22": "ADDED"},
		seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColumns(t *testing.T) {
	c := connect(t)
	p := pool(network("blue"), vlan(7))
	create(t, c, p)
	p.Status = v1.BCSNetPoolStatus{
		Status: v1.PoolNormal, Capacity: 3, Active: 1, Reserved: 1, Available: 1,
		Conditions: []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady,
			LastTransitionTime: metav1.Now(),
		}},
	}
	if err := c.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	create(t, c, lease("10.0.0.20", "web", "a"))
	create(t, c, address("10.0.0.21"))

	type table struct {
		Columns, Wide []string
		Rows          [][]any // without the ages
	}
	tests := map[string]table{
		v1.PoolResource: {
			Columns: []string{"Name", "Net", "Mask", "Total", "Active", "Reserved", "Free", "State", "Parent", "Age"},
			Wide: []string{"Gateway", "Network", "VLAN", "Priority", "Order", "Cordoned", "Cooling", "Hosts",
				"Status", "Ready"},
			Rows: [][]any{{
				"10.0.0.0", "10.0.0.0", 24., 3., 1., 1., 1., "Ready", nil, "10.0.0.1", "blue", 7., nil, nil, nil, 0.,
				0., "Normal", "True",
			}},
		},
		v1.IPResource: {
			Columns: []string{"Name", "Pool", "Status", "Host", "Namespace", "Pod", "Age"},
			Wide:    []string{"Owner", "Claim", "Container", "Interface", "CNINetwork", "Gateway", "Updated"},
			Rows: [][]any{
				{"10.0.0.20", "10.0.0.0", "Active", "10.0.0.11", "web", "a", nil, nil, "c-a", "eth0", "pods",
					"10.0.0.9"},
				{"10.0.0.21", "10.0.0.0", "Available", nil, nil, nil, nil, nil, nil, nil, nil, nil},
			},
		},
	}
	for resource, want := range tests {
		t.Run(resource, func(t *testing.T) {
			var got table
			answer := getTable(t, resource)
			for _, col := range answer.ColumnDefinitions {
				if col.Priority == 0 {
					got.Columns = append(got.Columns, col.Name)
				} else {
					got.Wide = append(got.Wide, col.Name)
				}
			}
			for _, row := range answer.Rows {
				var cells []any
				for i, cell := range row.Cells {
					if col := answer.ColumnDefinitions[i].Name; col != "Age" && col != "Updated" {
						cells = append(cells, cell)
					}
				}
				got.Rows = append(got.Rows, cells)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}

	// kubectl knows the short names, the category, and shows when a lease last changed as an age.
	for args, want := range map[string]string{
		"bnp": "NAME NET MASK TOTAL ACTIVE RESERVED FREE STATE PARENT AGE",
		"bnp -o wide": "NAME NET MASK TOTAL ACTIVE RESERVED FREE STATE PARENT GATEWAY NETWORK VLAN PRIORITY ORDER " +
			"CORDONED COOLING HOSTS STATUS READY AGE",
		"bnip": "NAME POOL STATUS HOST NAMESPACE POD AGE",
		"bnip -o wide": "NAME POOL STATUS HOST NAMESPACE POD OWNER CLAIM CONTAINER INTERFACE CNINETWORK GATEWAY " +
			"UPDATED AGE",
	} {
		out, err := kubectl(t, append([]string{"get"}, strings.Fields(args)...)...)
		header, _, _ := strings.Cut(out, "\n")
		if got := strings.Join(strings.Fields(header), " "); err != nil || got != want {
			t.Errorf("kubectl get %s: %v\n got %s\nwant %s", args, err, got, want)
		}
	}
	out, err := kubectl(t, "get", "bcsnet", "-o", "name")
	const suffix = ".networkextension.bkbcs.tencent.com/"
	want := "bcsnetip" + suffix + "10.0.0.20\nbcsnetip" + suffix + "10.0.0.21\nbcsnetpool" + suffix + "10.0.0.0\n"
	if diff := cmp.Diff(want, out); diff != "" || err != nil {
		t.Errorf("kubectl get bcsnet: %v (-want +got):\n%s", err, diff)
	}
	if updated := cellOf(t, getTable(t, v1.IPResource), "10.0.0.20", "Updated"); !strings.HasSuffix(updated, "s") ||
		strings.Contains(updated, "T") {
		t.Errorf("Updated = %q, want an age in seconds", updated)
	}
}

// getTable asks for a list as kubectl does.
func getTable(t *testing.T, resource string) metav1.Table {
	t.Helper()
	url := cluster.Config.Host + "/apis/" + v1.GroupVersion.String() + "/" + resource
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	resp, err := httpClient(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %v: %s", url, resp.Status, err, body)
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	return table
}

func cellOf(t *testing.T, table metav1.Table, row, column string) string {
	t.Helper()
	for _, r := range table.Rows {
		if r.Cells[0] != row {
			continue
		}
		for i, col := range table.ColumnDefinitions {
			if col.Name == column {
				s, _ := r.Cells[i].(string)
				return s
			}
		}
	}
	t.Fatalf("no cell %s of %s", column, row)
	return ""
}
