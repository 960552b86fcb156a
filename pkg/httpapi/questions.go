package httpapi

import (
	"context"

	"golang.org/x/sync/semaphore"
)

const (
	// maxQuestion bounds a question of the scheduler. Whole nodes have some ten thousand bytes each: it has room for
	// more than 5,000 of them.
	maxQuestion = 96 << 20
	// smallQuestion is the longest question that passes for a small one: thousands of nodes by their names.
	smallQuestion = 1 << 20
	// wholeCost is how many bytes of memory a byte of a large question takes at most: there is the body, and there are its
	// nodes cut out of it, which are also the answer.
	wholeCost = 4
	// nameCost is the same for a small one. Names are short: what there is of each beside its bytes is more, and a node
	// that is not for the pod comes back with a reason.
	nameCost = 80
	// maxLarge and maxSmall bound the memory of all questions of a kind, in bytes; more wait. The longest one has room.
	maxLarge = wholeCost * maxQuestion
	maxSmall = 4 * nameCost * smallQuestion
)

// questions bounds the memory of the questions of schedulers. Small ones have their own share: they do not wait for large
// ones that wait.
type questions struct{ large, small *semaphore.Weighted }

func newQuestions() questions {
	return questions{large: semaphore.NewWeighted(maxLarge), small: semaphore.NewWeighted(maxSmall)}
}

// enter waits until there is room for a question of so many bytes, negative where it does not say; leave gives the room
// back. The error is that of the context.
func (q questions) enter(ctx context.Context, length int64) (leave func(), err error) {
	share, cost := q.large, wholeCost*min(length, maxQuestion)
	switch {
	case length < 0:
		cost = maxLarge
	case length <= smallQuestion:
		share, cost = q.small, nameCost*length
	}
	if err := share.Acquire(ctx, cost); err != nil {
		return nil, err
	}
	return func() { share.Release(cost) }, nil
}
