package controlplane

import (
	"context"
	"syscall"
)

// StopAPIServer ends the API server in order; connections are cut after at most two seconds.
func (cp *ControlPlane) StopAPIServer() error { return cp.apiserver.stop() }

// KillAPIServer ends the API server as a crash would.
func (cp *ControlPlane) KillAPIServer() error { return cp.apiserver.kill() }

// StartAPIServer starts the API server again, on the same port and data, and returns when it is ready.
func (cp *ControlPlane) StartAPIServer(ctx context.Context) error { return cp.apiserver.start(ctx) }

// RestartAPIServer stops and starts the API server.
func (cp *ControlPlane) RestartAPIServer(ctx context.Context) error {
	if err := cp.StopAPIServer(); err != nil {
		return err
	}
	return cp.StartAPIServer(ctx)
}

// PauseAPIServer freezes the API server: connections stay open, nothing is answered.
func (cp *ControlPlane) PauseAPIServer() error { return cp.apiserver.pause() }

// ResumeAPIServer lets a paused API server run on; what was sent to it meanwhile is served.
func (cp *ControlPlane) ResumeAPIServer() error { return cp.apiserver.signal(syscall.SIGCONT) }

// StopEtcd ends etcd in order.
func (cp *ControlPlane) StopEtcd() error { return cp.etcd.stop() }

// KillEtcd ends etcd as a crash would: what it had acknowledged is on the disk.
func (cp *ControlPlane) KillEtcd() error { return cp.etcd.kill() }

// StartEtcd starts etcd again, on the same port and data. Its data is in Dir/etcd: a copy taken
// while it is stopped can be put back before a later start, as a restore does.
func (cp *ControlPlane) StartEtcd(ctx context.Context) error { return cp.etcd.start(ctx) }
