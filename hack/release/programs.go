package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The names of the command line's programs.
const (
	ctl    = "bcsnetctl"
	plugin = "kubectl-bcsnet"
	shim   = "kubectl_complete-bcsnet"
)

// program returns where the program of a platform is built.
func (r *release) program(p platform, name string) string {
	return filepath.Join(r.work, p.system+"_"+p.arch, name)
}

func (r *release) programs(ctx context.Context) error {
	for _, p := range r.platforms {
		for name, pkg := range map[string]string{ctl: "./cmd/bcsnetctl", plugin: "./plugins/kubectl"} {
			if err := r.Compile(ctx, pkg, p.system, p.arch, r.program(p, name)); err != nil {
				return err
			}
		}
	}
	here := platform{runtime.GOOS, runtime.GOARCH}
	if _, err := os.Stat(r.program(here, ctl)); err == nil {
		return nil
	}
	return r.Compile(ctx, "./cmd/bcsnetctl", here.system, here.arch, r.program(here, ctl))
}

// own runs the bcsnetctl of this machine, and returns what it prints.
func (r *release) own(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.program(platform{runtime.GOOS, runtime.GOARCH}, ctl), args...)
	cmd.Stderr = r.log
	return cmd.Output()
}

// completions writes the completion of each shell under the name by which the shell finds it.
func (r *release) completions(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Join(r.work, "completions"), 0o755); err != nil {
		return err
	}
	for shell, name := range shells() {
		text, err := r.own(ctx, "completion", shell)
		if err != nil {
			return fmt.Errorf("completion of %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(r.work, "completions", name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func shells() map[string]string {
	return map[string]string{
		"bash": "bcsnetctl.bash", "zsh": "_bcsnetctl", "fish": "bcsnetctl.fish", "powershell": "bcsnetctl.ps1",
	}
}

// manifests writes install.yaml, which has the image of this release.
func (r *release) manifests(ctx context.Context) error {
	text, err := r.own(ctx, "install", "--print", "--image", "ghcr.io/bcsnet/bcsnet-controller:"+r.Version)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "install.yaml"), text, 0o644)
}
