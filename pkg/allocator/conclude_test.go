package allocator

import (
	"testing"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// A request that a DEL has overtaken gives back what it took itself, and nothing that its holder had before.
func TestUndo(t *testing.T) {
	s := newSite("9-12")
	r := newReplica(t, s.pool)
	now := r.leases.Now()
	earlier, mine := s.of(newPod(t, "undo-earlier", s.host, r), "undo-c1"), s.of(newPod(t, "undo-mine", s.host, r), "undo-c2")
	earlier.StartedAt, mine.StartedAt = now.Add(-time.Minute), now
	had, took := r.one(earlier), r.one(mine)
	err := r.undo(t.Context(), mine, []lease.Lease{r.lease(had), r.lease(took)})
	refused(t, err, ipam.ReasonContainerDeleted, "undo-c2")
	if l := r.lease(had); l.State != lease.Active || l.ContainerID != "undo-c1" {
		t.Errorf("what was held before: %+v", l)
	}
	if l := r.lease(took); l.State != lease.Available {
		t.Errorf("what the request took: %+v", l)
	}
}
