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
	// maxQuestion bounds a question of the scheduler, in bytes. A whole node as a scheduler has it, with fifty images
	// and without managedFields, has some ten thousand bytes: there is room for 5,000 of them.
	maxQuestion = 64 << 20
	// smallQuestion is the largest size of a small question: thousands of nodes by name.
	smallQuestion = 1 << 20
	// smallArrival is the part of a body that may arrive in the share of small questions.
	smallArrival = 64 << 10
	// firstBuffer is the first buffer for a question without a length.
	firstBuffer = 4 << 10

	// Upper bounds of the memory for parsing and answering, in addition to the body itself. For a small question, each
	// byte and each part counts: a name is short, and an unsuitable node is returned with a reason. A large one has at
	// most maxPodParts and maxAsked parts, which baseCost includes; its nodes are not copied.
	byteCost  = 40
	partCost  = 700
	baseCost  = 64 << 20
	wholeCost = 1

	// arrivingSmall and arrivingLarge bound the memory of all partly received bodies, in bytes. The largest body needs
	// its last buffer and the one before.
	arrivingSmall = 32 << 20
	arrivingLarge = 2 * maxQuestion
	// maxSmall and maxLarge bound the memory for parsing and answering the questions of a kind, in bytes.
	maxSmall = 128 << 20
	maxLarge = baseCost + wholeCost*maxQuestion

	// A question is refused if, after a grace period, it arrives more slowly than this on average.
	graceOfArrival, paceOfArrival = 2 * time.Second, 64 << 10 // bytes a second
)

// memoryLimit bounds the memory of schedulers' questions in two stages; galaxy's bodies share the first. In the first
// stage, bodies count by the buffers that they fill: announcing a large body costs nothing before it is sent. In the
// second stage, complete bodies wait for memory to be decided. In both stages, small questions have their own share, so
// that they do not wait for large ones.
type memoryLimit struct {
	arriving, deciding shares
	// senders has each sender's share of the arriving bodies.
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

// buffer is an arriving body, counted in a share and for its sender.
type buffer struct {
	arriving shares
	senders  *senders
	who      string
	bytes    []byte
	share    *semaphore.Weighted
}

// grow enlarges the buffer, or refuses. It does not wait, because requests that wait with half a body would wait for
// each other.
func (b *buffer) grow(length int64) error {
	next := max(firstBuffer, 2*cap(b.bytes))
	// One byte more, to detect the end.
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

// release returns the memory of the buffer.
func (b *buffer) release() {
	if b.share != nil {
		b.share.Release(int64(cap(b.bytes)))
		b.senders.giveBack(b.who, int64(cap(b.bytes)))
		b.share = nil
	}
}

// read reads a JSON body that may be large, of at most the given number of bytes, from a sender. release returns its
// memory, and must also be called after an error. An HTTP status comes with the error.
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
		_ = conn.SetReadDeadline(began.Add(patience(len(b.bytes)))) // the recorder of a test has no deadline
		var n int
		n, err = source.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
	}
	_ = conn.SetReadDeadline(began.Add(readTime)) // the server reads on, to notice if the client leaves
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

// meetLimit makes the server close the connection some time after the answer, as it does after reading the maximum of a
// body. Otherwise a caller that is still sending would get a reset instead of the answer. No data of the request is
// read.
func meetLimit(w http.ResponseWriter) {
	_, _ = http.MaxBytesReader(w, io.NopCloser(strings.NewReader(" ")), 0).Read(make([]byte, 1))
}

// patience returns the time that a body may take from its beginning until the given number of bytes has arrived.
func patience(arrived int) time.Duration {
	return min(graceOfArrival+time.Duration(arrived)*time.Second/paceOfArrival, readTime)
}

// cost returns the memory that a question counts for while it is decided, in bytes, and whether it is small.
func cost(body []byte) (bytes int64, small bool) {
	if len(body) > smallQuestion {
		return baseCost + wholeCost*int64(len(body)), false
	}
	return byteCost*int64(len(body)) + partCost*int64(min(commas(body, anyDepth), maxPodParts+maxAsked)), true
}

// enter waits until there is memory to decide a question; leave returns the memory.
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

// readSmall reads a JSON body of at most the given number of bytes, whose memory is counted until it is complete.
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
