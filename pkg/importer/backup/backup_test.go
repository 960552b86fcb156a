package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

const objects = `
{kind: BCSNetPool, metadata: {name: blue, uid: u, resourceVersion: "7", finalizers: [networkextension.bkbcs.tencent.com/pool, example.com/mine]}, spec: {net: 10.1.0.0, mask: 24, availableIPs: [10.1.0.20-10.1.0.29], later: {x: 1}}, status: {capacity: 10}}
---
{kind: BCSNetIPClaim, metadata: {name: db, namespace: default, generation: 3}, spec: {replicas: 1, later: 2}, status: {used: 1, held: 1}}
---
{kind: BCSNetIP, metadata: {name: 10.1.0.20}, spec: {pool: blue, mask: 24}, status: {status: Available}}
---
{kind: BCSNetIP, metadata: {name: 10.1.0.21, finalizers: [networkextension.bkbcs.tencent.com/held]}, spec: {pool: blue, mask: 24}, status: {status: Active, owner: vm-1, boundVersion: "9", updateTime: "2026-01-02T00:00:00Z", later: y}}
---
{kind: BCSNetIP, metadata: {name: 10.1.0.22}, spec: {pool: blue, mask: 24}, status: {status: Available, updateTime: "2026-01-02T00:00:00Z", history: [{holder: default/a, until: "2026-01-02T00:00:00Z"}]}}
`

// written returns a backup of the objects.
func written(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(objects, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetAPIVersion("networkextension.bkbcs.tencent.com/v1")
		if err := w.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	if want := (Counts{Pools: 1, Claims: 1, Addresses: 2}); w.Counts != want {
		t.Errorf("%+v are in it, want %+v", w.Counts, want)
	}
	return b.String()
}

// A pool that is being deleted comes back cordoned: its range may belong to somebody else by then.
func TestPoolThatIsBeingDeleted(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"net": "10.1.0.0"}}}
	o.SetAPIVersion("networkextension.bkbcs.tencent.com/v1")
	o.SetKind("BCSNetPool")
	if cordoned, _, _ := unstructured.NestedBool(Kept(o).Object, "spec", "cordoned"); cordoned {
		t.Error("a pool that stays is cordoned")
	}
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	if cordoned, _, _ := unstructured.NestedBool(Kept(o).Object, "spec", "cordoned"); !cordoned {
		t.Error("it is not cordoned")
	}
}

// signed returns lines with an end that fits them.
func signed(lines string, pools, claims, addresses int) string {
	sum := sha256.Sum256([]byte(lines))
	return lines + fmt.Sprintf(`{"kind":"End","pools":%d,"claims":%d,"addresses":%d,"sha256":%q}`+"\n", pools, claims,
		addresses, hex.EncodeToString(sum[:]))
}

func TestWhatIsKept(t *testing.T) {
	rows, err := Read(strings.NewReader(written(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(rows.Pools) != 1 || len(rows.Claims) != 1 || len(rows.Addresses) != 2 {
		t.Fatalf("%+v", rows)
	}
	pool := rows.Stored[importer.PoolObject("blue")].Object
	if later, _, _ := unstructured.NestedFieldNoCopy(pool, "spec", "later"); later == nil {
		t.Error("a field that this release does not know is lost")
	}
	for _, gone := range []string{"status", "uid", "resourceVersion", "/pool"} {
		if strings.Contains(fmt.Sprint(pool), gone) {
			t.Errorf("%s is kept: %v", gone, pool)
		}
	}
	if !strings.Contains(fmt.Sprint(pool), "example.com/mine") {
		t.Error("a finalizer of somebody else is lost")
	}
	l := rows.Addresses[0].Lease
	if l.Addr.String() != "10.1.0.21" || l.State != lease.Active || l.Owner != "vm-1" || l.BoundVersion != 0 ||
		!l.HeldFinalizer {
		t.Errorf("%+v", l)
	}
	if len(rows.Left) != 1 || rows.Left[0].Cause != "fields of a later release are left out" {
		t.Errorf("left: %v", rows.Left)
	}
}

func TestDamaged(t *testing.T) {
	whole := written(t)
	lines := strings.SplitAfter(whole, "\n")
	first, body, last := lines[0], strings.Join(lines[:len(lines)-2], ""), lines[len(lines)-2]
	address := lines[3]
	for name, tc := range map[string]struct{ text, want string }{
		"empty":            {"", "line 1: the last line is missing"},
		"not JSON":         {"apiVersion: v1\n", "line 1: "},
		"another file":     {`{"kind":"List"}` + "\n", "does not begin as a backup does"},
		"cut off":          {body, "the last line is missing"},
		"cut in a line":    {whole[:len(whole)-40], "line 6: "},
		"a line is gone":   {strings.Replace(whole, address, "", 1), "2 addresses are said to be in it"},
		"a letter changed": {strings.Replace(whole, "vm-1", "vm-2", 1), "changed it after it was written"},
		"goes on":          {whole + last, "it goes on behind its end"},
		"twice":            {signed(body+address, 1, 1, 3), "address 10.1.0.21 is in it twice"},
		"no address":       {signed(first+strings.Replace(address, "10.1.0.21", "ten", 1), 0, 0, 1), "ten"},
		"long line":        {first + strings.Repeat("x", maxLine+1), "the last line is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			rows, err := Read(strings.NewReader(tc.text))
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if len(rows.Pools)+len(rows.Addresses) > 0 {
				t.Error("rows of a damaged file")
			}
		})
	}
}

func TestLaterRelease(t *testing.T) {
	_, err := Read(strings.NewReader(strings.Replace(written(t), `"format":1`, `"format":2`, 1)))
	var newer *NewerError
	if !errors.As(err, &newer) || newer.Format != 2 {
		t.Errorf("%v", err)
	}
	rows, err := Read(strings.NewReader(signed(`{"format":1,"kind":"Backup","more":1}`+"\n"+
		`{"kind":"BCSNetThing","metadata":{"name":"a"}}`+"\n", 0, 0, 0)))
	if err != nil || len(rows.Left) != 1 || rows.Left[0].Object != "1 object of kind BCSNetThing" {
		t.Errorf("%v, %v", rows.Left, err)
	}
}

// Addresses are read one by one: memory holds leases, not the file.
func TestManyAddresses(t *testing.T) {
	const n = 65536
	var b bytes.Buffer
	w, err := NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "networkextension.bkbcs.tencent.com/v1", "kind": kindAddress,
			"metadata": map[string]any{"name": fmt.Sprintf("10.1.%d.%d", i>>8, i&255)},
			"spec":     map[string]any{"pool": "blue", "mask": int64(16)},
			"status": map[string]any{
				"status": "Active", "host": "10.0.0.11", "containerID": fmt.Sprintf("%064d", i), "ifName": "eth0",
				"podName": fmt.Sprintf("web-%d", i), "podNamespace": "default", "podUID": fmt.Sprintf("%036d", i),
				"updateTime": "2026-01-02T00:00:00Z", "startedAt": "2026-01-02T00:00:00Z",
			},
		}}
		if err := w.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	file := strings.NewReader(b.String())
	b = bytes.Buffer{}
	before := heap()
	rows, err := Read(file)
	if err != nil || len(rows.Addresses) != n {
		t.Fatalf("%d addresses, %v", len(rows.Addresses), err)
	}
	if used := heap() - before; used > 120<<20 {
		t.Errorf("%d MiB for %d addresses", used>>20, n)
	}
	runtime.KeepAlive(rows)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format":1,"kind":"Backup"}` + "\n" + `{"kind":"BCSNetIP","metadata":{"name":"10.0.0.1"}}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Read(bytes.NewReader(text)); err == nil && !bytes.Contains(text, []byte("End")) {
			t.Error("a file without an end is whole")
		}
	})
}
