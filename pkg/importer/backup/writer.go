package backup

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// Writer writes a backup, one object at a time.
type Writer struct {
	Counts

	sum hash.Hash
	to  *bufio.Writer
}

// NewWriter begins a backup.
func NewWriter(to io.Writer) (*Writer, error) {
	w := &Writer{sum: sha256.New()}
	w.to = bufio.NewWriterSize(io.MultiWriter(to, w.sum), 1<<16)
	return w, w.line(first())
}

// Add writes an object, unless that is an address that says nothing: one that nobody ever had, or an object that is
// being deleted and that nobody has.
func (w *Writer) Add(o *unstructured.Unstructured) error {
	kept := Kept(o)
	if kept.GetKind() == kindAddress && blank(kept) {
		return nil
	}
	w.add(kept.GetKind())
	return w.line(kept.Object)
}

// End writes the last line.
func (w *Writer) End() error {
	if err := w.to.Flush(); err != nil { // into the sum, too
		return err
	}
	sum := hex.EncodeToString(w.sum.Sum(nil))
	if err := w.line(end{kindEnd, w.Pools, w.Claims, w.Addresses, sum}); err != nil {
		return err
	}
	return w.to.Flush()
}

func (w *Writer) line(v any) error {
	text, err := json.Marshal(v) // fields in the order of their names
	if err != nil {
		return err
	}
	_, err = w.to.Write(append(text, '\n'))
	return err
}

// Kept returns an object as it is kept: without its status where others derive that, and without what is true in one
// API server alone: versions, UIDs, owner references, and the finalizers that bcsnet sets itself. A pool that is being
// deleted is kept as a cordoned one.
func Kept(o *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetName(o.GetName())
	out.SetNamespace(o.GetNamespace())
	if labels := o.GetLabels(); len(labels) > 0 {
		out.SetLabels(labels)
	}
	annotations := o.GetAnnotations()
	for _, name := range []string{
		corev1.LastAppliedConfigAnnotation, v1.ChangedByAnnotation, v1.RestoringAnnotation,
	} {
		delete(annotations, name)
	}
	if len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	var others []string
	for _, f := range o.GetFinalizers() {
		if f != v1.PoolFinalizer && f != v1.ClaimFinalizer && f != v1.HeldFinalizer {
			others = append(others, f)
		}
	}
	if len(others) > 0 {
		out.SetFinalizers(others)
	}
	if spec, ok := o.Object["spec"].(map[string]any); ok {
		if o.GetKind() == kindPool && o.GetDeletionTimestamp() != nil {
			spec["cordoned"] = true // its range may belong to somebody else by the time of the restore
		}
		out.Object["spec"] = spec
	}
	if status, ok := o.Object["status"].(map[string]any); ok && o.GetKind() == kindAddress {
		delete(status, "boundVersion")
		if second, ok := status["secondAttachment"].(map[string]any); ok {
			delete(second, "boundVersion")
		}
		out.Object["status"] = status
	}
	return out
}

// blank reports whether an address says nothing: nobody has it, and nobody had it.
func blank(o *unstructured.Unstructured) bool {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	state, _ := status["status"].(string)
	return (state == "" || state == string(v1.IPAvailable)) && status["updateTime"] == nil &&
		status["history"] == nil && status["conflict"] == nil
}
