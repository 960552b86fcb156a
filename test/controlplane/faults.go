package controlplane

import (
	"context"
	"syscall"
)

// StopAPIServer ends the API server in an orderly way. Connections are cut after at most two seconds.
func (cp *ControlPlane) StopAPIServer() error { return cp.apiserver.stop() }

// KillAPIServer ends the API server like a crash.
func (cp *ControlPlane) KillAPIServer() error { return cp.apiserver.kill() }

// StartAPIServer starts the API server again with the same port and data, and returns when it is ready.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error { return cp.apiserver.start(ctx) }

// RestartAPIServer stops and starts the API server.
func (cp *ControlPlane) RestartAPIServer(ctx context.Context) error {
	if err := cp.StopAPIServer(); err != nil {
		return err
	}
	return cp.StartAPIServer(ctx)
}

// PauseAPIServer freezes the API server: connections stay open, but nothing is answered.
func (cp *ControlPlane) PauseAPIServer() error { return cp.apiserver.pause() }

// ResumeAPIServer continues a paused API server. It then serves the requests that arrived meanwhile.
func (cp *ControlPlane) ResumeAPIServer() error { return cp.apiserver.signal(syscall.SIGCONT) }

// StopEtcd ends etcd in order.
func (cp *ControlPlane) StopEtcd() error { return cp.etcd.stop() }

// KillEtcd ends etcd like a crash. Acknowledged writes are on disk.
func (cp *ControlPlane) KillEtcd() error { return cp.etcd.kill() }

// StartEtcd starts etcd again with the same port and data. To simulate a restore, replace Dir/etcd before the start by
// a copy that was made while etcd was stopped.
func (cp *ControlPlane) StartEtcd(ctx context.Context) error { return cp.etcd.start(ctx) }
