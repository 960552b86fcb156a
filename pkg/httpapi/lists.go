package httpapi

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/limiter"
)

const (
	// listsAtOnce bounds the lists that are made at the same time. Each scans all leases and uses a whole processor
	// meanwhile, which ADDs and DELs need, too.
	listsAtOnce = 1
	// rowRoom is more than the text of any row takes, in bytes: the CRD bounds each of its fields.
	rowRoom = 2 << 10
	// smallList is the largest number of rows of a small list.
	smallList = defaultPage
	// answersSmall and answersLarge bound the texts of all lists that are being made or sent, in bytes.
	answersSmall = 16 << 20
	answersLarge = 32 << 20
	// makingOneList is the memory for the rows of the largest page until they are text, in bytes.
	makingOneList = 40 << 20
)

// lists bounds the processor time and memory of lists, for any number of callers and requests. Callers take turns.
// Small lists have their own memory, so that slow readers of large pages do not block them.
type lists struct {
	turns *limiter.Limiter
	room  shares
}

func newLists() lists {
	return lists{
		turns: limiter.New(listsAtOnce),
		room:  shares{semaphore.NewWeighted(answersSmall), semaphore.NewWeighted(answersLarge)},
	}
}

// listing is the answer to a request for a list. It counts until close is called.
type listing struct {
	http.ResponseWriter
	lists *lists
	rows  int
	share *semaphore.Weighted
	room  int64
	leave func()
}

func (l *lists) listing(w http.ResponseWriter, rows int) *listing {
	return &listing{ResponseWriter: w, lists: l, rows: rows, leave: func() {}}
}

// reserve reserves memory for the text of the answer. It does not wait, because only readers can release the memory in
// use.
func (l *listing) reserve() error {
	if l.share != nil {
		return nil
	}
	share := l.lists.room.small
	if l.rows > smallList {
		share = l.lists.room.large
	}
	room := int64(l.rows) * rowRoom
	if !share.TryAcquire(room) {
		return ipam.Refuse(ipam.ReasonOverloaded,
			"other lists are on their way to slow readers, and there is no room for another of %d rows", l.rows).
			WithHint("ask again, not before the time that Retry-After tells, or for fewer rows at a time")
	}
	l.share, l.room = share, room
	return nil
}

// begin waits for the caller's turn to have a list made.
func (l *listing) begin(ctx context.Context, caller string) error {
	leave, err := l.lists.turns.Enter(ctx, limiter.Take, caller)
	if err != nil {
		return ipam.Refuse(ipam.ReasonOverloaded, "too many lists are asked for: %v", err).
			WithHint("ask again, not before the time that Retry-After tells")
	}
	l.leave = leave
	return l.reserve()
}

// Write writes the whole answer. The list is complete at this point, so the next one may begin without waiting for the
// reader. The unused part of the reservation is released, and a reader slower than the minimum pace is cut off.
func (l *listing) Write(text []byte) (int, error) {
	l.leave()
	if spare := l.room - int64(len(text)); spare > 0 {
		l.share.Release(spare)
		l.room -= spare
	}
	patience := graceOfArrival + time.Duration(len(text))*time.Second/paceOfArrival
	// The recorder of a test has no deadline.
	_ = http.NewResponseController(l.ResponseWriter).SetWriteDeadline(time.Now().Add(patience))
	return l.ResponseWriter.Write(text)
}

// close releases the rest of the reservation.
func (l *listing) close() {
	l.leave()
	if l.share != nil {
		l.share.Release(l.room)
		l.share, l.room = nil, 0
	}
}

// Unwrap returns the inner writer, in which http.ResponseController finds the connection.
func (l *listing) Unwrap() http.ResponseWriter { return l.ResponseWriter }
