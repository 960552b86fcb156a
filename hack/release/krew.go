package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// krewArchive returns the name of an archive that krew downloads. The version is in its address.
func krewArchive(p platform) string { return plugin + "_" + p.system + "_" + p.arch + ".tar.gz" }

// krew fills the manifest in, for the platforms that were built.
func (r *release) krew(context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.Root, "plugins", "kubectl", "bcsnet.yaml"))
	if err != nil {
		return err
	}
	var names []string
	for _, p := range r.platforms {
		names = append(names, krewArchive(p))
	}
	functions := template.FuncMap{"addURIAndSha": func(address, tag string) (string, error) {
		var b strings.Builder
		inner, err := template.New("uri").Parse(address)
		if err == nil {
			err = inner.Execute(&b, map[string]string{"TagName": tag})
		}
		if err != nil || !slices.Contains(names, path.Base(b.String())) {
			return "uri: " + b.String(), err
		}
		sum, err := checksum(filepath.Join(r.out, path.Base(b.String())))
		return "uri: " + b.String() + "\n    sha256: " + sum, err
	}}
	manifest, err := template.New("bcsnet.yaml").Funcs(functions).Parse(string(text))
	if err != nil {
		return err
	}
	var filled bytes.Buffer
	if err := manifest.Execute(&filled, map[string]string{"TagName": r.Version}); err != nil {
		return err
	}
	var whole map[string]any
	if err := yaml.Unmarshal(filled.Bytes(), &whole); err != nil {
		return err
	}
	spec, ok := whole["spec"].(map[string]any)
	if !ok {
		return fmt.Errorf("the manifest has no spec: %s", &filled)
	}
	all, ok := spec["platforms"].([]any)
	if !ok {
		return fmt.Errorf("the manifest has no platforms: %s", &filled)
	}
	spec["platforms"] = slices.DeleteFunc(all, func(p any) bool {
		fields, _ := p.(map[string]any)
		return fields["sha256"] == nil
	})
	out, err := yaml.Marshal(whole)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "bcsnet.yaml"), out, 0o644)
}

// checksum returns the SHA-256 of a file in hexadecimal.
func checksum(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return fmt.Sprintf("%x", sum.Sum(nil)), err
}

// checksums writes SHA256SUMS of all that is in the directory, the images included.
func (r *release) checksums(context.Context) error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, e := range entries {
		if e.IsDir() || e.Name() == "SHA256SUMS" {
			continue
		}
		sum, err := checksum(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(lines.String()), 0o644)
}
