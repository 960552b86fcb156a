package report

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// part is one file of a report.
type part struct {
	file, what string
	// write returns the number of objects that it wrote; negative if that makes no sense for the file.
	write func(ctx context.Context, w io.Writer) (int, error)
}

// bundle writes an archive, and records its files and the missing parts for the README.
type bundle struct {
	gzip  *gzip.Writer
	tar   *tar.Writer
	now   time.Time
	files []string
	lost  []string
}

// reportFolder is the folder to which the archive unpacks.
const reportFolder = "bcsnet-report/"

// errUnwritable marks errors of writing the archive, in contrast to those of reading its contents.
var errUnwritable = errors.New("the archive cannot be written")

func newBundle(w io.Writer, now time.Time) *bundle {
	z := gzip.NewWriter(w)
	return &bundle{gzip: z, tar: tar.NewWriter(z), now: now.UTC().Truncate(time.Second)}
}

// add writes one file. It collects the file on disk first, because the archive needs its size in advance and a cluster
// may have many addresses. It keeps what it collected before an error.
func (b *bundle) add(ctx context.Context, p part) (n int, err error) {
	spool, err := os.CreateTemp("", "bcsnet-report-*")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errUnwritable, err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	n, failed := p.write(ctx, spool)
	size, err := spool.Seek(0, io.SeekEnd)
	if err == nil && (size > 0 || failed == nil) {
		err = b.copy(p, spool, size)
	}
	if err != nil {
		return n, fmt.Errorf("%w: %w", errUnwritable, err)
	}
	return n, failed
}

func (b *bundle) copy(p part, spool io.ReadSeeker, size int64) error {
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	header := &tar.Header{Name: reportFolder + p.file, Mode: 0o600, Size: size, ModTime: b.now, Format: tar.FormatPAX}
	if err := b.tar.WriteHeader(header); err != nil {
		return err
	}
	b.files = append(b.files, fmt.Sprintf("* %#q: %s", p.file, p.what))
	_, err := io.Copy(b.tar, spool)
	return err
}

// missing records for the README that a part could not be read in full.
func (b *bundle) missing(p part, err error) {
	b.lost = append(b.lost, fmt.Sprintf("* %#q: %s: %v", p.file, p.what, err))
}

// finish writes the README and closes the archive.
func (b *bundle) finish(ctx context.Context, s *app.App) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# bcsnet report\n\nMade by %s %s at %s of %s.\n", app.ProgramName, s.Version,
		b.now.Format(time.RFC3339), s.Where())
	fmt.Fprintf(&text,
		"\nFiles ending in .jsonl hold one object a line. Values of environment variables, managedFields and the\n"+
			"annotation of kubectl apply were left out; Secrets and ConfigMaps were not read.\n\n%s\n",
		strings.Join(b.files, "\n"))
	if len(b.lost) > 0 {
		fmt.Fprintf(&text, "\n## Not read, or not in full\n\n%s\n", strings.Join(b.lost, "\n"))
	}
	_, err := b.add(ctx, part{file: "README.md", write: func(_ context.Context, w io.Writer) (int, error) {
		_, err := text.WriteTo(w)
		return -1, err
	}})
	if err = errors.Join(err, b.tar.Close(), b.gzip.Close()); err != nil && !errors.Is(err, errUnwritable) {
		return fmt.Errorf("%w: %w", errUnwritable, err)
	}
	return err
}

func howMany(n int) string {
	if n < 0 {
		return ""
	}
	return fmt.Sprintf(": %d", n)
}

// strip removes possible secrets from an object, and fields that do not help to find a problem.
func strip(o *unstructured.Unstructured) {
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	blank(o.Object)
}

// removed replaces a value.
const removed = "(removed)"

// blank replaces the values of environment variables at any depth.
func blank(in any) {
	switch in := in.(type) {
	case []any:
		for _, e := range in {
			blank(e)
		}
	case map[string]any:
		for name, value := range in {
			if vars, ok := value.([]any); ok && name == "env" {
				blankVars(vars)
				continue
			}
			blank(value)
		}
	}
}

func blankVars(vars []any) {
	for _, e := range vars {
		if m, ok := e.(map[string]any); ok && m["value"] != nil {
			m["value"] = removed
		}
	}
}

// lean removes all fields of a node on which allocation does not depend.
func lean(o *unstructured.Unstructured) {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for field := range status {
		if !slices.Contains([]string{"addresses", "conditions", "nodeInfo"}, field) {
			delete(status, field)
		}
	}
	o.Object["status"] = status
	o.SetAnnotations(nil)
}
