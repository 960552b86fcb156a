package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

const (
	// maxQuestion bounds a question of the scheduler. A whole node as a scheduler has it, with fifty images and without
	// managedFields, has some ten thousand bytes: there is room for 5,000 of them.
	maxQuestion = 64 << 20
	// smallQuestion is the longest question that passes for a small one: thousands of nodes by their names.
	smallQuestion = 1 << 20
	// smallArrival is how much of a body arrives in the share of small ones.
	smallArrival = 64 << 10
	// firstBuffer is for a question that says nothing of its length.
	firstBuffer = 4 << 10

	// What reading and answering takes at most, beside the bytes themselves. Of a small question each byte and each
	// part counts: a name is short, and a node that is not for the pod comes back with a reason. A large one has at
	// most maxPodParts and maxAsked of them, which are in baseCost; its nodes are not copied.
	byteCost  = 40
	partCost  = 700
	baseCost  = 64 << 20
	wholeCost = 1

	// arrivingSmall and arrivingLarge bound the memory of all bodies that have come in part, in bytes. Of the largest
	// one there is room for the last buffer and the one before.
	arrivingSmall = 32 << 20
	arrivingLarge = 2 * maxQuestion
	// maxSmall and maxLarge bound what reading and answering the questions of a kind takes, in bytes.
	maxSmall = 128 << 20
	maxLarge = baseCost + wholeCost*maxQuestion

	// A question whose sender is slower than this on average, after a while to begin in, is refused.
	graceOfArrival, paceOfArrival = 2 * time.Second, 64 << 10 // bytes a second
)

// memoryLimit bounds the memory of the questions of schedulers, in two stages; galaxy's bodies share the first. What
// arrives counts as it arrives, by the buffers that it fills: who announces much and sends little takes little. What
// has arrived waits for room to be decided in. In both stages small questions have their own share: they do not wait
// for large ones.
type memoryLimit struct {
	arriving, deciding shares
	// senders have a share each of what arrives.
	senders *senders
}

type shares struct{ small, large *semaphore.Weighted }

func newMemoryLimit() memoryLimit {
	return memoryLimit{
		arriving: shares{semaphore.NewWeighted(arrivingSmall), semaphore.NewWeighted(arrivingLarge)},
		deciding: shares{semaphore.NewWeighted(maxSmall), semaphore.NewWeighted(maxLarge)},
		senders:  &senders{},
	}
}

// buffer is a body that arrives, with its place in a share and in that of who sends it.
type buffer struct {
	arriving shares
	senders  *senders
	who      string
	bytes    []byte
	share    *semaphore.Weighted
}

// grow makes room for more, or refuses. It does not wait: those that wait with half a body would wait for each other.
func (b *buffer) grow(length int64) error {
	next := max(firstBuffer, 2*cap(b.bytes))
	// one more, to meet the end
	if announced := int(min(length, maxQuestion)) + 1; length >= 0 && announced > cap(b.bytes) {
		next = min(next, announced)
	}
	if next >= maxQuestion {
		next = maxQuestion + 1
	}
	share := b.arriving.small
	if next > smallArrival {
		share = b.arriving.large
	}
	if !b.senders.take(b.who, int64(next)) {
		return tooManyOfSender()
	}
	if !share.TryAcquire(int64(next)) {
		b.senders.giveBack(b.who, int64(next))
		return tooMany()
	}
	bytes := make([]byte, len(b.bytes), next)
	copy(bytes, b.bytes)
	b.release()
	b.bytes, b.share = bytes, share
	return nil
}

// release gives the place back.
func (b *buffer) release() {
	if b.share != nil {
		b.share.Release(int64(cap(b.bytes)))
		b.senders.giveBack(b.who, int64(cap(b.bytes)))
		b.share = nil
	}
}

// read reads a JSON body that may be large, of at most so many bytes and by who sends it. release gives the memory
// back, also after an error. The status goes with the error.
func (m memoryLimit) read(
	w http.ResponseWriter, r *http.Request, most int64, who string,
) (body []byte, release func(), status int, err error) {
	b := &buffer{arriving: m.arriving, senders: m.senders, who: who}
	if err := checkType(r); err != nil {
		return nil, b.release, http.StatusUnsupportedMediaType, err
	}
	if r.ContentLength > most {
		meetLimit(w)
		status, err = checkBody(nil, most, &http.MaxBytesError{Limit: most})
		return nil, b.release, status, err
	}
	began, conn := time.Now(), http.NewResponseController(w)
	source := http.MaxBytesReader(w, r.Body, most)
	for err == nil {
		if len(b.bytes) == cap(b.bytes) {
			if err := b.grow(r.ContentLength); err != nil {
				return nil, b.release, http.StatusServiceUnavailable, err
			}
		}
		_ = conn.SetReadDeadline(began.Add(patience(len(b.bytes)))) // a test's recorder has none
		var n int
		n, err = source.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
	}
	_ = conn.SetReadDeadline(began.Add(readTime)) // the server goes on reading, to see whether the client leaves
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, b.release, http.StatusRequestTimeout,
			ipam.Refuse(ipam.ReasonBadRequest, "the body comes too slowly: %d bytes in %s", len(b.bytes),
				time.Since(began).Round(time.Millisecond))
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	status, err = checkBody(b.bytes, most, err)
	return b.bytes, b.release, status, err
}

// meetLimit lets the server close the connection some time after the answer, as it does when it has read as much as it
// may of a body. A caller that is still sending would get a reset in place of the answer otherwise. Nothing of the
// request is read.
func meetLimit(w http.ResponseWriter) {
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader(" ")), 0).Read(make([]byte, 1))
}

// patience returns how long a body may take from its beginning while so many bytes of it have come.
func patience(arrived int) time.Duration {
	return min(graceOfArrival+time.Duration(arrived)*time.Second/paceOfArrival, readTime)
}

// cost returns what a question counts for while it is decided.
func cost(body []byte) (bytes int64, small bool) {
	if len(body) > smallQuestion {
		return baseCost + wholeCost*int64(len(body)), false
	}
	return byteCost*int64(len(body)) + partCost*int64(min(commas(body, anyDepth), maxPodParts+maxAsked)), true
}

// enter waits until there is room to decide a question; leave gives the room back.
func (m memoryLimit) enter(ctx context.Context, body []byte) (leave func(), err error) {
	n, small := cost(body)
	share := m.deciding.large
	if small {
		share = m.deciding.small
	}
	if err := share.Acquire(ctx, n); err != nil {
		return nil, tooMany()
	}
	return func() { share.Release(n) }, nil
}

// readSmall reads a JSON body of at most so many bytes, whose memory is counted until it is there.
func (m memoryLimit) readSmall(w http.ResponseWriter, r *http.Request, most int64, who string) ([]byte, int, error) {
	may := most
	if r.ContentLength >= 0 {
		may = min(most, r.ContentLength)
	}
	if !m.senders.take(who, may) {
		return nil, http.StatusServiceUnavailable, tooManyOfSender()
	}
	defer m.senders.giveBack(who, may)
	return readBody(w, r, most)
}

func tooMany() *ipam.Refusal {
	return ipam.Refuse(ipam.ReasonUnavailable, "too many large questions at once").WithHint("ask again")
}
