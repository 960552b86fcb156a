package pool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/importer/backup"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// manifest is a pool in a file.
type manifest struct {
	from string
	pool resource.Pool
}

// readManifests reads the pools of files; - is standard input. It warns of other objects and skips them.
func readManifests(s *app.App, files []string) ([]manifest, error) {
	var all []manifest
	seen := map[string]string{}
	for _, name := range files {
		objects, err := readObjects(s, name)
		if err != nil {
			return nil, err
		}
		name = sourceName(name)
		if len(objects) == 0 { // the command that should have written it has probably failed
			return nil, app.Refuse(app.ReasonPoolInvalid, "%s is empty: there is no pool in it", name)
		}
		for _, o := range objects {
			if o.GroupVersionKind() != v1.GroupVersion.WithKind(resource.PoolKind) {
				s.Say.Warn("%s: %s %s is not a pool and left out", name, o.GetKind(), o.GetName())
				continue
			}
			p, err := parseManifest(o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if first := seen[p.Name]; first != "" {
				return nil, app.Usagef("pool %s is in %s and again in %s", p.Name, first,
					name).WithHint("name every pool once")
			}
			seen[p.Name] = name
			all = append(all, manifest{from: name, pool: p})
		}
	}
	return all, nil
}

func sourceName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

func readObjects(s *app.App, name string) ([]*unstructured.Unstructured, error) {
	if name == "-" {
		return decodeObjects(sourceName(name), s.In)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &app.Failure{Message: err.Error(), Cause: err}
	}
	defer f.Close()
	return decodeObjects(name, f)
}

// inputBuffer is the number of bytes that are read ahead to distinguish JSON from YAML.
const inputBuffer = 4096

// decodeObjects decodes the documents of a file. It returns the items of lists.
func decodeObjects(name string, r io.Reader) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(r, inputBuffer)
	for {
		var raw runtime.RawExtension
		switch err := documents.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, app.Refuse(app.ReasonPoolInvalid, "%s cannot be read: %v", name, err)
		}
		if text := bytes.TrimSpace(raw.Raw); len(text) == 0 || string(text) == "null" {
			continue
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw.Raw); err != nil {
			return nil, app.Refuse(app.ReasonPoolInvalid, "%s cannot be read: %v", name, err)
		}
		if !o.IsList() {
			out = append(out, o)
			continue
		}
		err := o.EachListItem(func(item runtime.Object) error {
			if u, ok := item.(*unstructured.Unstructured); ok {
				out = append(out, u)
			}
			return nil
		})
		if err != nil {
			return nil, app.Refuse(app.ReasonPoolInvalid, "%s cannot be read: %v", name, err)
		}
	}
}

// parseManifest checks a pool of a file as far as possible without the API server, and returns its cleaned form.
func parseManifest(o *unstructured.Unstructured) (resource.Pool, error) {
	p := resource.Pool{BCSNetPool: &v1.BCSNetPool{}, Stored: backup.Kept(o)}
	if o.GetName() == "" {
		return p, app.Refuse(app.ReasonPoolInvalid, "a pool has no name: metadata.name is missing")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(p.Stored.Object, p.BCSNetPool,
		true); err != nil {
		return p, app.Refuse(app.ReasonPoolInvalid, "pool %s: %s", o.GetName(),
			strings.TrimPrefix(err.Error(), "strict decoding error: "))
	}
	if problem := store.Pool(p.BCSNetPool).Problem; problem != "" {
		return p, app.Refuse(app.ReasonPoolInvalid, "pool %s: %s", o.GetName(), problem)
	}
	return p, nil
}

// applyPool returns the pool as kubectl apply --server-side --force-conflicts would store it, by a dry run.
func applyPool(ctx context.Context, p *resource.Pools, m manifest) (resource.Pool, error) {
	stored, err := p.API.Apply(ctx, m.pool.Name, m.pool.Stored,
		metav1.ApplyOptions{FieldManager: "kubectl", Force: true, DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return resource.Pool{}, err
	}
	return resource.ReadPool(backup.Kept(stored))
}

// overlaid returns the same without the API server: fields that the file does not name stay.
func overlaid(live, wanted resource.Pool) (resource.Pool, error) {
	next := backup.Kept(live.Stored).DeepCopy()
	for _, field := range []string{"labels", "annotations"} {
		set, _, _ := unstructured.NestedStringMap(wanted.Stored.Object, "metadata", field)
		for k, value := range set {
			if err := unstructured.SetNestedField(next.Object, value, "metadata", field, k); err != nil {
				return resource.Pool{}, err
			}
		}
	}
	spec, _, err := unstructured.NestedMap(wanted.Stored.Object, "spec")
	for k, value := range spec {
		err = errors.Join(err, unstructured.SetNestedField(next.Object, value, "spec", k))
	}
	if err != nil {
		return resource.Pool{}, err
	}
	return resource.ReadPool(next)
}
