package gc

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bcsnet/bcsnet/pkg/controller/node"
)

// stored returns waits as a new term of a leader has them. recalled gets what they recall.
func stored(c client.Client, recalled *[]node.Former) *waits {
	return &waits{live: c, client: c, namespace: "bcsnet-system", recall: func(all []node.Former) { *recalled = all }}
}

// TestFormersAreWrittenDown: the next term recalls what was saved, also after a release that knows only the waits has
// replaced them in between. Nothing is written if nothing has changed.
func TestFormersAreWrittenDown(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	want := []node.Former{
		{Host: netip.MustParseAddr("10.0.0.31"), Name: "a", Until: at},
		{Host: netip.MustParseAddr("fd00::31"), Name: "b.example", Until: at.Add(-time.Hour)},
	}
	c, ctx := fake.NewClientBuilder().Build(), context.Background()
	var recalled []node.Former
	first := stored(c, &recalled)
	for range 2 {
		if err := first.load(ctx); err != nil {
			t.Fatal(err)
		}
		if err := first.save(ctx, nil, want); err != nil {
			t.Fatal(err)
		}
	}
	var o corev1.ConfigMap
	if err := c.Get(ctx, client.ObjectKey{Namespace: "bcsnet-system", Name: waitsName}, &o); err != nil {
		t.Fatal(err)
	}
	if o.ResourceVersion != first.object.ResourceVersion || o.ResourceVersion != "1" {
		t.Errorf("saved again without a change: version %s", o.ResourceVersion)
	}
	o.Data = map[string]string{"10.1.0.20": "2026-01-02T03:05:00Z 7"} // as the earlier release does
	if err := c.Update(ctx, &o); err != nil {
		t.Fatal(err)
	}
	next := stored(c, &recalled)
	if err := next.load(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, recalled, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := next.save(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if len(next.object.BinaryData) > 0 {
		t.Errorf("nothing is needed any more, and it says %s", next.object.BinaryData)
	}
}

// TestFormersText: lines that are none of ours are left out, and what does not fit is the end, in whole lines.
func TestFormersText(t *testing.T) {
	t.Parallel()
	good := "10.0.0.31 a 2026-01-02T03:04:05Z\n"
	text := "\n10.0.0.31 a\nx a 2026-01-02T03:04:05Z\n10.0.0.31 a yesterday\n" + good + "10.0.0.31 a 2026-01-02T03:04:05Z more"
	if got := writeFormers(readFormers([]byte(text))); string(got) != good {
		t.Errorf("got %q", got)
	}
	var all []node.Former
	for i := range 5000 {
		all = append(all, node.Former{
			Host: netip.MustParseAddr("fd00::31"), Name: fmt.Sprintf("%d%s", i, strings.Repeat("n", 200)), Until: time.Unix(1, 0),
		})
	}
	got := writeFormers(all)
	fit := readFormers(got)
	if len(got) > maxFormers || len(fit) == 0 || len(fit) == len(all) || got[len(got)-1] != '\n' ||
		fit[len(fit)-1].Name != all[len(fit)-1].Name {
		t.Errorf("%d of %d in %d bytes", len(fit), len(all), len(got))
	}
}
