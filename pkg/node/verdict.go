package node

import (
	"fmt"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/hosts"
)

// Reason is the reason of the Node's condition.
type Reason string

// Reasons. The condition is True with the first reason and False with the others.
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
	// ReasonOtherConflistFirst: the runtime uses another network configuration.
	ReasonOtherConflistFirst Reason = hosts.OtherConflistFirst
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonReady, ReasonNotInstalled, ReasonTokenExpired, ReasonAllocatorUnreachable, ReasonPoolsFull,
		ReasonOtherConflistFirst,
	}
}

const (
	// fullTime is the time for which pools count as full after an ADD that found them full: waiting pods try more
	// often.
	fullTime = 2 * time.Minute
	// deaf is the number of unanswered questions in a row after which the node counts as cut off: a restarting replica
	// is back earlier.
	deaf = 2
	// maxMessage bounds a message, in octets: a Node is written and read often.
	maxMessage = 512
)

// verdict is the state of the node, in words.
type verdict struct {
	reason  Reason
	message string
}

// signs are the facts from which a verdict is made.
type signs struct {
	installed error
	// age is the age of the token, and life its lifetime; 0 if that is not known or there is no token.
	age, life time.Duration
	// unanswered is the error of the last question if as many in a row were unanswered as deaf says.
	unanswered error
	questions  int
	full       *runstate.Full
	// broken describes what is missing for pods with a network configuration that is not ours; empty for nothing.
	broken string
	// first names the network configurations that the runtime prefers to ours; empty for none.
	first string
	now   time.Time
}

// judge returns the state of the node. If there are several problems, it reports the one that may cause the others.
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
	case s.first != "":
		return newVerdict(ReasonOtherConflistFirst, "%s", s.first)
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
