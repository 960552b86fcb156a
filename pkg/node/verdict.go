package node

import (
	"fmt"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
)

// Reason is the reason of the Node's condition.
type Reason string

// Reasons. The condition is True with the first one and False with the others.
const (
	// ReasonReady: everything is installed, and the allocator answers.
	ReasonReady Reason = "Ready"
	// ReasonNotInstalled: a step of the installation failed.
	ReasonNotInstalled Reason = "NotInstalled"
	// ReasonTokenExpired: the token has expired without renewal.
	ReasonTokenExpired Reason = "TokenExpired"
	// ReasonAllocatorUnreachable: no replica answers this node.
	ReasonAllocatorUnreachable Reason = "AllocatorUnreachable"
	// ReasonPoolsFull: the last ADD was refused because the pools of the node are full.
	ReasonPoolsFull Reason = "PoolsFull"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{ReasonReady, ReasonNotInstalled, ReasonTokenExpired, ReasonAllocatorUnreachable, ReasonPoolsFull}
}

const (
	// fullTime is how long pools count as full after an ADD that found them so: pods that wait try more often.
	fullTime = 2 * time.Minute
	// deaf is how many questions in a row no replica answers before the node counts as cut off: a replica that restarts
	// is back before that.
	deaf = 2
	// maxMessage bounds a message, in octets: a Node is written and read often.
	maxMessage = 512
)

// verdict is how the node is, for people.
type verdict struct {
	reason  Reason
	message string
}

// signs are what a verdict is made of.
type signs struct {
	installed error
	// age is that of the token, and life how long it is good; 0 where nobody knows, or there is none.
	age, life time.Duration
	// unanswered is why no replica answered so many questions in a row.
	unanswered error
	questions  int
	full       *runstate.Full
	// broken is what pods lack that get their network by a configuration which is none of ours; empty for nothing.
	broken string
	now    time.Time
}

// judge returns how the node is: of several troubles the one that the others may come from.
func judge(s signs) verdict {
	switch {
	case s.installed != nil:
		return newVerdict(ReasonNotInstalled, "%v", s.installed)
	case s.life > 0 && s.age > s.life:
		return newVerdict(ReasonTokenExpired, "the token was renewed %s ago and is good for %s; hint: see whether the "+
			"kubelet reaches the API server", s.age.Round(time.Second), s.life)
	case s.unanswered != nil && s.questions >= deaf:
		return newVerdict(ReasonAllocatorUnreachable, "no replica answers: %v; pods that run keep their addresses",
			s.unanswered)
	case s.full != nil && s.now.Sub(s.full.At).Abs() < fullTime:
		return newVerdict(ReasonPoolsFull, "%s", s.full.Message)
	case s.broken != "":
		return newVerdict(ReasonReady, "the CNI plugins are installed, and the allocator answers; but %s", s.broken)
	default:
		return newVerdict(ReasonReady, "the CNI plugins are installed, and the allocator answers")
	}
}

func newVerdict(reason Reason, format string, args ...any) verdict {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxMessage {
		text = text[:maxMessage] + "…"
	}
	return verdict{reason, text}
}
