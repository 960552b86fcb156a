package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/ipam"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// Values of the label result.
const (
	answered   = "answered"
	unanswered = "unanswered"
)

// writeTime bounds a write of the condition.
const writeTime = 10 * time.Second

// health reports the state of the node, and delivers the plugins' undelivered releases.
type health struct {
	options   Options
	installed func() error
	tokens    *tokens
	metrics   *metrics
	log       *slog.Logger
	client    kubernetes.Interface
	asker     *asker
	writer    *writer

	// began is the start of this process.
	began time.Time
	// failures is the number of questions in a row that no replica answered, and why the last error.
	failures int
	why      error
	// written is the error of the last write of the condition, next the earliest time of the next write, and pause the
	// pause before it.
	written string
	next    time.Time
	pause   time.Duration
}

func newHealth(
	o Options, installed func() error, client kubernetes.Interface, m *metrics, age *tokens, log *slog.Logger,
) *health {
	return &health{
		options: o, installed: installed, tokens: age, metrics: m, log: log, client: client, began: o.Now(),
		asker:  &asker{configDir: o.ConfigDir, now: o.Now},
		writer: &writer{node: o.Node, client: client, now: o.Now, beat: o.Every.Beat, words: o.Every.Check},
	}
}

// run checks the node until the context ends: often whether it is in order, and less often whether the allocator
// answers.
func (h *health) run(ctx context.Context) error {
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: h.client.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	h.writer.recorder = broadcaster.NewRecorder(scheme.Scheme, "bcsnet-node")
	ctx = klog.NewContext(ctx, klog.Background())
	compare := time.NewTicker(h.options.Every.Compare)
	defer compare.Stop()
	var asked time.Time
	for ctx.Err() == nil {
		if now := h.options.Now(); now.Sub(asked).Abs() >= h.options.Every.Check && h.options.installed() {
			asked = now
			h.check(ctx)
		}
		if ctx.Err() == nil {
			h.say(ctx)
		}
		select {
		case <-ctx.Done():
		case <-compare.C:
		}
	}
	return nil
}

// check asks the allocator, unless it has answered a plugin meanwhile, and delivers releases if there are any.
func (h *health) check(ctx context.Context) {
	state, err := runstate.Dir(h.options.RunDir).Read()
	if err != nil {
		h.log.Warn("the state of the plugins cannot be read", "error", err)
	}
	if age := h.options.Now().Sub(state.AnsweredAt); age < 0 || age > h.options.Every.Check || h.failures > 0 {
		if err := h.asker.ask(ctx, state.Receipt); err != nil {
			if ctx.Err() == nil {
				h.failures, h.why = h.failures+1, err
				h.metrics.asked.WithLabelValues(unanswered).Inc()
			}
			return
		}
		h.metrics.asked.WithLabelValues(answered).Inc()
	}
	h.failures, h.why = 0, nil
	if err := deliver(ctx, h.options, h.log); err != nil {
		h.log.Warn("undelivered releases stay", "error", err)
	}
}

func deliver(ctx context.Context, o Options, log *slog.Logger) error {
	n, err := undelivered.In(o.DataDir).Len()
	if err != nil || n == 0 {
		return err
	}
	p := ipam.New(o.LogOutput, o.LogOutput)
	p.ConfigDir, p.Now = o.ConfigDir, o.Now
	d, err := p.Deliver(ctx)
	log.Info("undelivered releases", "delivered", d.Delivered, "dropped", d.Dropped, "left", d.Left)
	return err
}

// say writes the Node's condition. If that fails, the next call tries again.
func (h *health) say(ctx context.Context) {
	v := judge(h.signs())
	h.metrics.condition.Reset()
	for _, r := range Reasons() {
		value := 0.0
		if r == v.reason {
			value = 1
		}
		h.metrics.condition.WithLabelValues(string(r)).Set(value)
	}
	now := h.options.Now()
	starting := v.reason == ReasonNotInstalled && now.Sub(h.began) < h.options.Every.Grace
	if starting || now.Before(h.next) {
		return
	}
	ctx, stop := context.WithTimeout(ctx, writeTime)
	defer stop()
	err := h.writer.write(ctx, v)
	if err == nil {
		h.written, h.pause = "", 0
		return
	}
	h.pause = min(max(2*h.pause, time.Second), lastPause)
	h.next = now.Add(h.pause)
	if text := err.Error(); text != h.written && ctx.Err() == nil {
		h.log.Warn("the Node does not say how it is", "error", err)
		h.written = text
	}
}

func (h *health) signs() signs {
	s := signs{
		installed: h.installed(), unanswered: h.why, questions: h.failures, broken: h.options.broken(),
		first: h.options.preferred(), now: h.options.Now(),
	}
	if h.options.TokenFile != "" {
		s.age, s.life, _ = h.tokens.age() // a missing token counts as not installed
	}
	if state, err := runstate.Dir(h.options.RunDir).Read(); err == nil {
		s.full = state.PoolsFull
	}
	return s
}

const (
	// askTime bounds one question to all replicas together.
	askTime = 5 * time.Second
	// nobody is the ID of a container that does not exist. Every replica answers a question for its addresses from
	// memory.
	nobody = "bcsnet-node"
)

// asker asks the allocator as the plugins do: with their files and token, at the replicas that they know.
type asker struct {
	configDir string
	now       func() time.Time
	// replica is the URL of the replica that answered last.
	replica string
}

// ask returns nil if a replica answered. A refusal also counts as an answer: the replica accepted the caller. receipt
// is that of the last ADD on this node; empty for none.
func (a *asker) ask(ctx context.Context, receipt string) error {
	ctx, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	c := client.Client{Access: a.access, Preferred: a.replica, Receipt: receipt, Now: a.now}
	err := c.Do(ctx, client.Call{
		Method: http.MethodGet, Path: wire.Prefix + "/container/" + nobody, RequestID: uuid.NewString(), Once: true,
		Accept: func(data json.RawMessage) error { return json.Unmarshal(data, &wire.LeaseList{}) },
	})
	if _, refused := errors.AsType[*client.Refusal](err); refused {
		err = nil
	}
	if err == nil {
		a.replica = c.Replica
	}
	return err
}

func (a *asker) access() (client.Access, error) {
	files, err := client.ReadFiles(a.configDir)
	if err != nil {
		return client.Access{}, err
	}
	now := parseConfig(files.Config)
	access := files.Access(now.Replicas, now.ServerName)
	return access, access.Check()
}
