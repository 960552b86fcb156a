// Package config carries the manifests, for programs that install them or compare them with what a
// cluster has.
package config

import "embed"

// Files are the manifests by their paths in this folder, such as crd/kustomization.yaml.
//
//go:embed authors/*.yaml crd/*.yaml default/*.yaml manager/*.yaml node/*.yaml policies/*.yaml rbac/*.yaml
var Files embed.FS
