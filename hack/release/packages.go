package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// packages writes a deb and an rpm of the command line for each processor of Linux, by nfpm.
func (r *release) packages(ctx context.Context) error {
	for _, p := range r.platforms {
		if p.system != "linux" {
			continue
		}
		config, err := r.packageConfig(p)
		if err != nil {
			return err
		}
		path := filepath.Join(r.work, "nfpm_"+p.arch+".yaml")
		if err := os.WriteFile(path, config, 0o644); err != nil {
			return err
		}
		for _, format := range []string{"deb", "rpm"} {
			out := filepath.Join(r.out, ctl+"_"+r.Version+"_linux_"+p.arch+"."+format)
			err := r.tool(ctx, "nfpm", "package", "--config", path, "--packager", format, "--target", out)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// tool runs a program of bin/tools.
func (r *release) tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(r.Root, "bin", "tools", name), args...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH="+strconv.FormatInt(r.Created.Unix(), 10))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s; hint: make bin/tools/%s", name, strings.Join(args, " "), err, out, name)
	}
	return nil
}

func (r *release) packageConfig(p platform) ([]byte, error) {
	content := func(from, to string, mode int) map[string]any {
		info := map[string]any{"mode": mode, "mtime": r.Created.Format(time.RFC3339)}
		return map[string]any{"src": from, "dst": to, "file_info": info}
	}
	completions := filepath.Join(r.work, "completions")
	contents := []map[string]any{
		content(r.program(p, ctl), "/usr/bin/"+ctl, 0o755), content(r.program(p, plugin), "/usr/bin/"+plugin, 0o755),
		content(r.shim(), "/usr/bin/"+shim, 0o755),
		content(filepath.Join(completions, "bcsnetctl.bash"), "/usr/share/bash-completion/completions/"+ctl, 0o644),
		content(filepath.Join(completions, "_bcsnetctl"), "/usr/share/zsh/site-functions/_bcsnetctl", 0o644),
		content(filepath.Join(completions, "bcsnetctl.fish"), "/usr/share/fish/vendor_completions.d/bcsnetctl.fish",
			0o644),
		content(filepath.Join(r.Root, "LICENSE"), "/usr/share/doc/bcsnetctl/copyright", 0o644),
	}
	pages, err := r.pages()
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		contents = append(contents, content(page, "/usr/share/man/man1/"+filepath.Base(page), 0o644))
	}
	return yaml.Marshal(map[string]any{
		"name": ctl, "arch": p.arch, "platform": "linux", "version": r.Version, "section": "admin",
		"priority":   "optional",
		"maintainer": "The bcsnet authors <https://github.com/bcsnet/bcsnet>", "license": "Apache-2.0",
		"homepage": "https://github.com/bcsnet/bcsnet", "mtime": r.Created.Format(time.RFC3339),
		"description": "Manage pod address pools, hosts and leases\nThe command line of bcsnet: bcsnetctl, kubectl " +
			"bcsnet.",
		"contents": contents, "rpm": map[string]any{"buildhost": "bcsnet"},
	})
}

func (r *release) chart(ctx context.Context) error {
	return r.tool(ctx, "helm", "package", filepath.Join(r.Root, "charts", "bcsnet"), "--version",
		strings.TrimPrefix(r.Version, "v"), "--app-version", r.Version, "--destination", r.out)
}
