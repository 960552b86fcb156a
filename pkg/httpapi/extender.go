package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// placement is one verb of a scheduler extender. Its answers have the scheduler's form, without the envelope. Invalid
// requests are refused with the envelope.
type placement struct {
	name string
	// answer returns the answer to a question, to be written as JSON. Its refusal is only for metrics: no node is
	// suitable for the pod.
	answer func(ctx context.Context, q *question) (any, *ipam.Refusal, error)
	// passed converts the leader's answer to the short form of a question into the answer to the question.
	passed func(q *question, body []byte) (any, error)
}

func (s *Service) extenderRoutes() map[string]placement {
	return map[string]placement{
		"/v1/filter":   {"filter", s.filter, passedFilter},
		"/v1/priority": {"priority", s.priority, passedPriority},
	}
}

// wholeAnswer is ExtenderFilterResult with whole, unparsed nodes.
type wholeAnswer struct {
	result extenderv1.ExtenderFilterResult
	nodes  []span
}

// write writes an answer. Whole nodes are written one by one: a buffer for all of them, which doubles as it grows,
// would be most of a question's memory.
func write(w io.Writer, answer any) error {
	whole, ok := answer.(wholeAnswer)
	if !ok {
		return json.NewEncoder(w).Encode(answer)
	}
	rest, ok := bytes.CutPrefix(marshal(whole.result), []byte(`{"Nodes":null`))
	if !ok {
		return errors.New("the first field of ExtenderFilterResult is not Nodes")
	}
	all := net.Buffers{[]byte(`{"Nodes":{"items":[`)}
	for i, node := range whole.nodes {
		if i > 0 {
			all = append(all, []byte(","))
		}
		all = append(all, node)
	}
	all = append(all, []byte("]}"), rest)
	_, err := all.WriteTo(w)
	return err
}

// extender serves one verb. Only the leader knows which pods passed the filter, so it answers if it can. Callers
// without permission are refused before the body is read, because it may be large.
func (s *Service) extender(op placement) http.Handler {
	asked := route{name: op.name, access: permission{"create", placements, byLease, everywhere}}
	return through(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, why, status, err := s.consult(w, r, op)
		if err != nil {
			s.refusals.answerWith(w, r, status, err)
			return
		}
		var reason ipam.Reason
		if why != nil {
			reason = why.Reason
		}
		s.ended(r, reason)
		w.Header().Set("Content-Type", "application/json")
		_ = write(w, answer) // the client may be gone
	}), s.begin(asked, questionCodec{}), s.callers.greet, s.callers.identify)
}

// questionCodec is the codec of questions. Errors found before the body is parsed have a status that schedulers show.
type questionCodec struct{ envelopeCodec }

func (questionCodec) status(why *ipam.Refusal) int {
	if why.Reason == ipam.ReasonBadRequest {
		return http.StatusBadRequest
	}
	return envelopeCodec{}.status(why)
}

// consult reads a question and gets the answer from the leader, or from this replica. It returns an HTTP status with
// the error.
func (s *Service) consult(
	w http.ResponseWriter, r *http.Request, op placement,
) (answer any, why *ipam.Refusal, status int, err error) {
	body, release, status, err := s.limits.memory.read(w, r, maxQuestion, "")
	defer release()
	if err != nil {
		return nil, nil, status, err
	}
	leave, err := s.limits.memory.enter(r.Context(), body)
	if err != nil {
		return nil, nil, http.StatusServiceUnavailable, err
	}
	defer leave()
	q, err := readQuestion(body)
	if err != nil {
		return nil, nil, http.StatusBadRequest, err
	}
	if err := s.ready(); err != nil {
		return nil, nil, http.StatusServiceUnavailable, err
	}
	if err := s.callers.checkArrival(r, body); err != nil {
		return nil, nil, envelopeCodec{}.status(asRefusal(err)), err
	}
	// A question causes no writes.
	if reply, _ := s.options.Forwarder.forward(r, q.short()); reply != nil && reply.status == http.StatusOK {
		if answer, err := op.passed(q, reply.body); err == nil {
			return answer, nil, http.StatusOK, nil
		}
	}
	err = decide(s.options.Log, r, func() (err error) {
		answer, why, err = op.answer(r.Context(), q)
		return err
	})
	if err != nil {
		return nil, nil, envelopeCodec{}.status(asRefusal(err)), err
	}
	return answer, why, http.StatusOK, nil
}

// filter returns the nodes that are suitable for a pod. If that cannot be determined, the answer has an error, which
// the scheduler writes into its event.
func (s *Service) filter(ctx context.Context, q *question) (any, *ipam.Refusal, error) {
	v, err := s.options.Scheduling.Filter(ctx, q.pod, q.names)
	if err != nil {
		refusal, ok := errors.AsType[*ipam.Refusal](err)
		if !ok {
			refusal = ipam.Refuse(ipam.ReasonUnavailable, "%v", err)
		}
		return extenderv1.ExtenderFilterResult{Error: refusal.Error()}, refusal, nil
	}
	if v.Refusal != nil && s.options.Refused != nil {
		s.options.Refused(v.Request, v.Refusal)
	}
	return q.filtered(extenderv1.ExtenderFilterResult{NodeNames: &v.Pass, FailedNodes: v.Failed}), v.Refusal, nil
}

// filtered converts a result to the form of the question: whole nodes for whole nodes.
func (q *question) filtered(by extenderv1.ExtenderFilterResult) any {
	pass := by.NodeNames
	if pass == nil || *pass == nil {
		pass = &[]string{}
	}
	if by.NodeNames = pass; q.nodes == nil || by.Error != "" {
		return by
	}
	passes := make(map[string]bool, len(*pass))
	for _, name := range *pass {
		passes[name] = true
	}
	by.NodeNames = nil
	whole := wholeAnswer{result: by}
	for i, name := range q.names {
		if passes[name] {
			whole.nodes = append(whole.nodes, q.nodes[i])
		}
	}
	return whole
}

func passedFilter(q *question, body []byte) (any, error) {
	var by extenderv1.ExtenderFilterResult
	if err := unmarshal("", body, &by); err != nil {
		return nil, err
	}
	return q.filtered(by), nil
}

func passedPriority(_ *question, body []byte) (any, error) {
	var list extenderv1.HostPriorityList
	err := json.Unmarshal(body, &list)
	return list, err
}

func (s *Service) priority(ctx context.Context, q *question) (any, *ipam.Refusal, error) {
	scores, err := s.options.Scheduling.Scores(ctx, q.pod, q.names)
	if err != nil {
		if _, ok := errors.AsType[*ipam.Refusal](err); !ok {
			err = ipam.Refuse(ipam.ReasonUnavailable, "%v", err).WithHint("ask again")
		}
		return nil, nil, err
	}
	list := make(extenderv1.HostPriorityList, len(q.names))
	for i, name := range q.names {
		list[i] = extenderv1.HostPriority{Host: name, Score: scores[i]}
	}
	return list, nil, nil
}
