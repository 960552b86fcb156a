//go:build !linux

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// errLinux says where real nodes run.
var errLinux = errors.New("real nodes need Linux")

func runNode() {}

func inFabric([]string, []*os.File) (*exec.Cmd, error) { return nil, errLinux }

func bringUpNodes(context.Context, options, func(string)) (*cluster, error) { return nil, errLinux }
