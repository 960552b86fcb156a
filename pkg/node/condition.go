package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/bcsnet/bcsnet/pkg/hosts"
)

// writer writes the Node's condition, and an event when its status changes.
type writer struct {
	node     string
	client   kubernetes.Interface
	recorder events.EventRecorder
	now      func() time.Time
	// beat is the interval in which an unchanged condition is written, and words the interval for a changed message
	// with the same reason.
	beat, words time.Duration

	last corev1.NodeCondition
	read bool
}

// write writes a verdict if it differs from the Node's condition, and otherwise once in a while.
func (w *writer) write(ctx context.Context, v verdict) error {
	if err := w.readOnce(ctx); err != nil {
		return err
	}
	status := corev1.ConditionFalse
	if v.reason == ReasonReady {
		status = corev1.ConditionTrue
	}
	now := metav1.NewTime(w.now().Truncate(time.Second))
	c := corev1.NodeCondition{
		Type: hosts.ConditionType, Status: status, Reason: string(v.reason), Message: v.message, LastHeartbeatTime: now,
		LastTransitionTime: now,
	}
	age := now.Sub(w.last.LastHeartbeatTime.Time).Abs()
	turned := w.last.Status != c.Status || w.last.Reason != c.Reason
	if w.last.Status == c.Status {
		c.LastTransitionTime = w.last.LastTransitionTime
	}
	if !turned && (age < w.words || w.last.Message == c.Message && age < w.beat) {
		return nil
	}
	if err := patchConditions(ctx, w.client, w.node, c); err != nil {
		return err
	}
	if turned && (w.last.Status != "" || status == corev1.ConditionFalse) {
		w.event(c)
	}
	w.last = c
	return nil
}

// readOnce reads the condition that an earlier pod wrote, so that the time of its last transition stays correct.
func (w *writer) readOnce(ctx context.Context) error {
	if w.read {
		return nil
	}
	node, err := w.client.CoreV1().Nodes().Get(ctx, w.node, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the Node: %w", err)
	}
	i := slices.IndexFunc(node.Status.Conditions,
		func(c corev1.NodeCondition) bool { return c.Type == hosts.ConditionType })
	if i >= 0 {
		w.last = node.Status.Conditions[i]
	}
	w.read = true
	return nil
}

// event writes an event about the changed condition. Events of nodes are found by the name as a UID, as the kubelet
// writes them.
func (w *writer) event(c corev1.NodeCondition) {
	kind := corev1.EventTypeWarning
	if c.Status == corev1.ConditionTrue {
		kind = corev1.EventTypeNormal
	}
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: w.node, UID: types.UID(w.node)}
	w.recorder.Eventf(about, nil, kind, c.Reason, "Check", "%s", c.Message)
}

// patchConditions writes conditions of a Node and leaves those of others unchanged.
func patchConditions(ctx context.Context, client kubernetes.Interface, node string, condition any) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{condition}}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{},
		"status")
	if err != nil {
		return fmt.Errorf("write the condition %s of the Node: %w", hosts.ConditionType, err)
	}
	return nil
}

func removeCondition(ctx context.Context, client kubernetes.Interface, node string) error {
	return patchConditions(ctx, client, node, map[string]any{"type": hosts.ConditionType, "$patch": "delete"})
}
