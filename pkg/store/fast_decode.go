package store

import (
	"bytes"
	"math"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// fastDecode decodes an object that has only what this package writes, in one pass. It decodes the fields that Lease
// reads and skips the rest. ok is false for anything else, such as an unknown field, a null or an escaped character,
// for which the JSON package is used. It halves the work of a start with many addresses.
func fastDecode(object []byte, o *v1.BCSNetIP) (ok bool) {
	q := fastDecoder{rest: object}
	q.object(func(name []byte) {
		switch string(name) {
		case "apiVersion":
			q.text(&o.APIVersion)
		case "kind":
			q.text(&o.Kind)
		case "metadata":
			q.object(func(name []byte) { q.metadata(name, &o.ObjectMeta) })
		case "spec":
			q.object(func(name []byte) { q.spec(name, &o.Spec) })
		case "status":
			q.object(func(name []byte) { q.status(name, &o.Status) })
		default:
			q.failed = true
		}
	})
	return !q.failed && len(bytes.TrimSpace(q.rest)) == 0
}

func (q *fastDecoder) metadata(name []byte, m *metav1.ObjectMeta) {
	switch string(name) {
	case "name":
		q.text(&m.Name)
	case "resourceVersion":
		q.text(&m.ResourceVersion)
	case "finalizers":
		q.texts(&m.Finalizers)
	case "labels":
		q.object(func(name []byte) {
			q.failed = q.failed || string(name) != v1.MigratingLabel
			m.Labels = map[string]string{v1.MigratingLabel: string(q.word())}
		})
	case "uid", "creationTimestamp":
		q.word()
	case "generation":
		q.number(math.MaxInt64)
	case "managedFields": // in objects that were never changed after their creation
		q.skip('[')
	default:
		q.failed = true
	}
}

func (q *fastDecoder) spec(name []byte, s *v1.BCSNetIPSpec) {
	switch string(name) {
	case "pool":
		q.text(&s.Pool)
	case "mask":
		s.Mask = int32(q.number(math.MaxInt32))
	case "gateway":
		q.text(&s.Gateway)
	case "address":
		q.text(&s.Address)
	default:
		q.failed = true
	}
}

func (q *fastDecoder) status(name []byte, s *v1.BCSNetIPStatus) {
	switch string(name) {
	case "status":
		s.Status = v1.IPPhase(q.word())
	case "host":
		q.text(&s.Host)
	case "fixed":
		s.Fixed = q.truth()
	case "claim":
		q.text(&s.Claim)
	case "containerID":
		q.text(&s.ContainerID)
	case "ifName":
		q.text(&s.IfName)
	case "podPrimaryKey":
		q.text(&s.PodPrimaryKey)
	case "podName":
		q.text(&s.PodName)
	case "podNamespace":
		q.text(&s.PodNamespace)
	case "podUID":
		q.text(&s.PodUID)
	case "podUIDNamedBy":
		q.text(&s.PodUIDNamedBy)
	case "cniNetwork":
		q.text(&s.CNINetwork)
	case "cniNetworkNamedBy":
		q.text(&s.CNINetworkNamedBy)
	case "addressNamedBy":
		q.text(&s.AddressNamedBy)
	case "given":
		q.given(&s.Given)
	case "givenTo":
		q.text(&s.GivenTo)
	case "owner":
		q.text(&s.Owner)
	case "supersededContainerIDs":
		q.texts(&s.SupersededContainerIDs)
	case "setSize":
		s.SetSize = int32(q.number(math.MaxInt32))
	case "slot":
		s.Slot = int32(q.number(math.MaxInt32))
	case "startedAt":
		q.text(&s.StartedAt)
	case "boundVersion":
		q.text(&s.BoundVersion)
	case "updateTime":
		q.text(&s.UpdateTime)
	case "terminationGracePeriodSeconds":
		s.TerminationGracePeriodSeconds = int32(q.number(math.MaxInt32))
	case "fixedIPExpiredTime":
		q.text(&s.FixedIPExpiredTime)
	case "secondAttachment":
		q.failed = q.failed || s.SecondAttachment != nil // twice: the JSON package mixes the two
		s.SecondAttachment = &v1.SecondAttachment{}
		q.object(func(name []byte) { q.second(name, s.SecondAttachment) })
	case "conflict":
		q.failed = q.failed || s.Conflict != nil // twice: the JSON package mixes the two
		s.Conflict = &v1.AddressConflict{}
		q.object(func(name []byte) { q.conflict(name, s.Conflict) })
	case "history":
		q.failed = q.failed || s.History != nil // twice: the JSON package mixes the two
		q.array(func() {
			var e v1.HistoryEntry
			q.object(func(name []byte) { q.past(name, &e) })
			s.History = append(s.History, e)
		})
	default:
		q.failed = true
	}
}

func (q *fastDecoder) second(name []byte, s *v1.SecondAttachment) {
	switch string(name) {
	case "podName":
		q.text(&s.PodName)
	case "podUID":
		q.text(&s.PodUID)
	case "containerID":
		q.text(&s.ContainerID)
	case "ifName":
		q.text(&s.IfName)
	case "host":
		q.text(&s.Host)
	case "startedAt":
		q.text(&s.StartedAt)
	case "terminationGracePeriodSeconds":
		s.TerminationGracePeriodSeconds = int32(q.number(math.MaxInt32))
	case "supersededContainerIDs":
		q.texts(&s.SupersededContainerIDs)
	case "boundVersion":
		q.text(&s.BoundVersion)
	case "cniNetwork":
		q.text(&s.CNINetwork)
	case "given":
		q.given(&s.Given)
	default:
		q.failed = true
	}
}

func (q *fastDecoder) given(to **v1.GivenSettings) {
	q.failed = q.failed || *to != nil // twice: the JSON package mixes the two
	s := &v1.GivenSettings{}
	*to = s
	q.object(func(name []byte) {
		switch string(name) {
		case "gateway":
			q.text(&s.Gateway)
		case "gatewayFrom":
			q.text(&s.GatewayFrom)
		case "vlan":
			s.VLAN = int32(q.number(math.MaxInt32))
		case "mtu":
			s.MTU = int32(q.number(math.MaxInt32))
		case "routes":
			q.texts(&s.Routes)
		case "routesDigest":
			q.text(&s.RoutesDigest)
		case "dns":
			q.texts(&s.DNS)
		case "dnsDigest":
			q.text(&s.DNSDigest)
		default:
			q.failed = true
		}
	})
}

func (q *fastDecoder) conflict(name []byte, c *v1.AddressConflict) {
	switch string(name) {
	case "mac":
		q.text(&c.MAC)
	case "host":
		q.text(&c.Host)
	case "containerID":
		q.text(&c.ContainerID)
	case "reportedAt":
		q.text(&c.ReportedAt)
	case "outcome":
		c.Outcome = v1.ConflictOutcome(q.word())
	case "until":
		q.text(&c.Until)
	default:
		q.failed = true
	}
}

func (q *fastDecoder) past(name []byte, e *v1.HistoryEntry) {
	switch string(name) {
	case "holder":
		q.text(&e.Holder)
	case "host":
		q.text(&e.Host)
	case "podUID":
		q.text(&e.PodUID)
	case "ifName":
		q.text(&e.IfName)
	case "since":
		q.text(&e.Since)
	case "until":
		q.text(&e.Until)
	case "verb":
		q.text(&e.Verb)
	case "by":
		q.text(&e.By)
	case "reason":
		q.text(&e.Reason)
	default:
		q.failed = true
	}
}

// fastDecoder reads JSON values one after the other. After an error it reads nothing more.
type fastDecoder struct {
	rest   []byte
	failed bool
}

// next skips white space and a required character.
func (q *fastDecoder) next(c byte) bool {
	if q.peek() != c {
		q.failed = true
		return false
	}
	q.rest = q.rest[1:]
	return true
}

// peek returns the first character that is not white space; 0 at the end and after a failure.
func (q *fastDecoder) peek() byte {
	for i, c := range q.rest {
		switch c {
		case ' ', '\n', '\t', '\r':
		default:
			q.rest = q.rest[i:]
			if q.failed {
				return 0
			}
			return c
		}
	}
	return 0
}

// list reads the comma-separated elements between two brackets; each reads one element.
func (q *fastDecoder) list(open, end byte, each func()) {
	if !q.next(open) {
		return
	}
	if q.peek() == end {
		q.next(end)
		return
	}
	for {
		each()
		if q.peek() == end {
			q.next(end)
			return
		}
		if !q.next(',') {
			return
		}
	}
}

func (q *fastDecoder) array(each func()) { q.list('[', ']', each) }

// object calls field with every name; field reads the value.
func (q *fastDecoder) object(field func(name []byte)) {
	q.list('{', '}', func() {
		name := q.word()
		if q.next(':') {
			field(name)
		}
	})
}

// word reads a string of plain characters. The result is valid as long as the input.
func (q *fastDecoder) word() []byte {
	if !q.next('"') {
		return nil
	}
	end := bytes.IndexByte(q.rest, '"')
	if end < 0 {
		q.failed = true
		return nil
	}
	w := q.rest[:end]
	for _, c := range w {
		if c < ' ' || c == '\\' || c > '~' {
			q.failed = true
			return nil
		}
	}
	q.rest = q.rest[end+1:]
	return w
}

func (q *fastDecoder) text(to *string) { *to = string(q.word()) }

func (q *fastDecoder) texts(to *[]string) {
	*to = nil
	q.array(func() { *to = append(*to, string(q.word())) })
}

// number reads an integer from 0 to a limit.
func (q *fastDecoder) number(limit uint64) uint64 {
	q.peek()
	n := 0
	for n < len(q.rest) && q.rest[n] >= '0' && q.rest[n] <= '9' {
		n++
	}
	v, err := strconv.ParseUint(string(q.rest[:n]), 10, 64)
	q.failed = q.failed || err != nil || v > limit || n > 1 && q.rest[0] == '0'
	q.rest = q.rest[n:]
	return v
}

func (q *fastDecoder) truth() bool {
	q.peek()
	for _, v := range []bool{true, false} {
		if rest, ok := bytes.CutPrefix(q.rest, []byte(strconv.FormatBool(v))); ok {
			q.rest = rest
			return v
		}
	}
	q.failed = true
	return false
}

// skip skips a value that begins with a bracket.
func (q *fastDecoder) skip(open byte) {
	if q.peek() != open {
		q.failed = true
		return
	}
	n := valueLength(q.rest)
	q.failed = n <= 0
	q.rest = q.rest[max(n, 0):]
}
