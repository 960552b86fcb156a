package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer/backup"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// draft is the text of a pool in an editor.
type draft struct {
	*app.App
	poolName string
	// text is the text without the comments on top.
	text []byte
	// path is the editor's file; empty before it exists.
	path string
	// refused is the error that makes the user edit the text again.
	refused error
	kept    bool
}

func newDraft(s *app.App, p resource.Pool) (*draft, error) {
	text, err := yaml.Marshal(backup.Kept(p.Stored).Object)
	return &draft{App: s, poolName: p.Name, text: text}, err
}

// open runs the editor, and reports whether the text has changed.
func (d *draft) open(ctx context.Context) (edited bool, err error) {
	if err := d.write(); err != nil {
		return false, err
	}
	if err := d.RunEditor(ctx, d.path); err != nil {
		return false, (&app.Failure{Message: fmt.Sprintf("the editor failed: %v", err), Cause: err}).
			WithHint("choose another one with KUBE_EDITOR or EDITOR")
	}
	text, err := os.ReadFile(d.path)
	if err != nil {
		return false, err
	}
	text = uncommented(text)
	if len(bytes.TrimSpace(text)) == 0 || bytes.Equal(text, d.text) {
		return false, nil
	}
	d.text = text
	return true, nil
}

func (d *draft) write() error {
	content := append([]byte(d.header()), d.text...)
	if d.path != "" {
		return os.WriteFile(d.path, content, 0o600)
	}
	f, err := os.CreateTemp("", app.ProgramName+"-pool-"+d.poolName+"-*.yaml")
	if err != nil {
		return err
	}
	d.path = f.Name()
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// header returns the comments on top of the text.
func (d *draft) header() string {
	var b strings.Builder
	b.WriteString("# Pool " + d.poolName + ". Lines that begin with # are left out; an empty file ends the edit.\n#\n")
	for _, err := range app.Flatten(d.refused) {
		for line := range strings.Lines("Refused: " + err.Error()) {
			b.WriteString("# " + strings.TrimSuffix(line, "\n") + "\n")
		}
		b.WriteString("#\n")
	}
	return b.String()
}

// uncommented removes the lines that are comments.
func uncommented(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte("#")) {
			out = append(out, line...)
		}
	}
	return out
}

func (d *draft) parse() (resource.Pool, error) {
	objects, err := decodeObjects("the text", bytes.NewReader(d.text))
	switch {
	case err != nil:
		return resource.Pool{}, err
	case len(objects) != 1:
		return resource.Pool{}, app.Refuse(app.ReasonPoolInvalid, "the text holds %s, not one",
			humanize.Plural(len(objects), "object"))
	}
	o := objects[0]
	if o.GetKind() != resource.PoolKind || o.GetName() != d.poolName {
		return resource.Pool{}, app.Refuse(app.ReasonPoolInvalid, "the text is %s %s: kind and name cannot change",
			o.GetKind(), o.GetName())
	}
	return parseManifest(o)
}

// wanted returns the stored pool with the spec, labels and annotations of the text.
func (d *draft) wanted(live resource.Pool) (*unstructured.Unstructured, error) {
	wanted, err := d.parse()
	if err != nil {
		return nil, err
	}
	next := live.Stored.DeepCopy()
	next.SetLabels(wanted.Stored.GetLabels())
	next.Object["spec"] = wanted.Stored.Object["spec"]
	annotations := wanted.Stored.GetAnnotations()
	for _, name := range []string{corev1.LastAppliedConfigAnnotation, v1.ChangedByAnnotation} {
		if value, ok := live.Annotations[name]; ok {
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[name] = value
		}
	}
	next.SetAnnotations(annotations)
	return next, nil
}

// save keeps the file of the text, and adds its path to the error.
func (d *draft) save(err error) error {
	d.kept = true
	kept := &app.Failure{Message: "your text is kept in " + d.path}
	return app.Several{err, kept}
}

// saveUnlessStored keeps the file of the text if the text was not stored in the cluster.
func (d *draft) saveUnlessStored(err error) error {
	if err == nil {
		return nil
	}
	return d.save(err)
}

// drop removes the editor's file unless it must be kept.
func (d *draft) drop() {
	if d.path == "" || d.kept {
		return
	}
	if err := os.Remove(d.path); err == nil || errors.Is(err, os.ErrNotExist) {
		d.path = ""
	}
}
