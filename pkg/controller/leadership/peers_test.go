package leadership

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/replica"
)

// TestUnaware: one replica that does not say that it knows a field is enough, also one that is silent.
func TestUnaware(t *testing.T) {
	lease := func(who replica.Identity, knows string) *coordinationv1.Lease {
		holder, seconds := who.Holder(), int32(40)
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: heartbeatName(who), Annotations: map[string]string{knowsAnnotation: knows}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds},
		}
	}
	leads := func(l *coordinationv1.Lease) *coordinationv1.Lease {
		l.Name, l.Annotations = LeaseName, nil
		return l
	}
	self, a, b := replica.New("self", ""), replica.New("a", ""), replica.New("b", "")
	for name, tc := range map[string]struct {
		leases   []*coordinationv1.Lease
		alone    bool
		unsynced bool
		silent   time.Duration
		want     string
	}{
		"alone":                      {alone: true},
		"no others":                  {},
		"others not read yet":        {unsynced: true, want: "another replica"},
		"all know it":                {leases: []*coordinationv1.Lease{lease(a, SecondAttachments), lease(b, "x,"+SecondAttachments)}},
		"one does not":               {leases: []*coordinationv1.Lease{lease(a, SecondAttachments), lease(b, "")}, want: "replica b"},
		"one knows something else":   {leases: []*coordinationv1.Lease{lease(a, SecondAttachments+"s")}, want: "replica a"},
		"one was killed":             {leases: []*coordinationv1.Lease{lease(a, "")}, silent: 5 * time.Minute, want: "replica a"},
		"this one's Lease":           {leases: []*coordinationv1.Lease{lease(self, "")}},
		"who leads knows it":         {leases: []*coordinationv1.Lease{lease(a, SecondAttachments), leads(lease(a, ""))}},
		"who leads is unknown":       {leases: []*coordinationv1.Lease{leads(lease(a, ""))}, want: "replica a"},
		"who led is unknown":         {leases: []*coordinationv1.Lease{leads(lease(a, ""))}, silent: 5 * time.Minute},
		"a Lease of nobody":          {leases: []*coordinationv1.Lease{{ObjectMeta: metav1.ObjectMeta{Name: LeaseName + "-x"}}}},
		"the Lease of somebody else": {leases: []*coordinationv1.Lease{leads(lease(replica.Parse("program"), ""))}, want: "replica program"},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := replica.NewKey()
			if err != nil {
				t.Fatal(err)
			}
			p := newPeers(self, key, NewTerms(slog.New(slog.DiscardHandler)))
			if !tc.alone {
				p.synced = func() bool { return !tc.unsynced }
			}
			for _, l := range tc.leases {
				p.set(l)
			}
			now := time.Now().Add(tc.silent)
			p.now = func() time.Time { return now }
			if got := p.Unaware(SecondAttachments); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
