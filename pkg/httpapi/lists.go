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
	// listsAtOnce bounds the lists that are made at the same time. One looks at every lease and has a processor for
	// itself meanwhile, which ADDs and DELs want, too.
	listsAtOnce = 1
	// rowRoom is more than the text of any row takes: the CRD bounds each of its fields.
	rowRoom = 2 << 10
	// smallList is how many rows pass for few.
	smallList = defaultPage
	// answersSmall and answersLarge bound the texts of all lists that are made or on their way to their readers, in
	// bytes.
	answersSmall = 16 << 20
	answersLarge = 32 << 20
	// makingOneList is what the rows of the largest page take until they are text.
	makingOneList = 40 << 20
)

// lists bounds what lists take of the processors and of memory, whoever asks for them and however often. They take
// turns by their callers. Small ones have room of their own: readers who are slow with large pages do not keep them
// out.
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

// listing is the answer to a request for a list. It counts until close.
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

// reserve takes room for the text of the answer. It does not wait: the room that is taken is for readers to give back.
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

// begin waits for the turn of the caller to have his list made.
func (l *listing) begin(ctx context.Context, caller string) error {
	leave, err := l.lists.turns.Enter(ctx, limiter.Take, caller)
	if err != nil {
		return ipam.Refuse(ipam.ReasonOverloaded, "too many lists are asked for: %v", err).
			WithHint("ask again, not before the time that Retry-After tells")
	}
	l.leave = leave
	return l.reserve()
}

// Write writes the whole answer. The list is made then, so the next one may be: no reader is waited for. What the text
// is shorter than was thought is given back, and a reader who is slower than the pace of questions does not get all of
// it.
func (l *listing) Write(text []byte) (int, error) {
	l.leave()
	if spare := l.room - int64(len(text)); spare > 0 {
		l.share.Release(spare)
		l.room -= spare
	}
	patience := graceOfArrival + time.Duration(len(text))*time.Second/paceOfArrival
	// a test's recorder has none
	_ = http.NewResponseController(l.ResponseWriter).SetWriteDeadline(time.Now().Add(patience))
	return l.ResponseWriter.Write(text)
}

// close gives back what is still taken.
func (l *listing) close() {
	l.leave()
	if l.share != nil {
		l.share.Release(l.room)
		l.share, l.room = nil, 0
	}
}

// Unwrap lets http.ResponseController find the connection.
func (l *listing) Unwrap() http.ResponseWriter { return l.ResponseWriter }
