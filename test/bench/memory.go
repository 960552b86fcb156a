package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"
)

// watchMemory reads the high-water mark of a process's memory every so often until it ends. What it returns waits for
// that, and returns the last mark in bytes. The resource usage that Linux has of a child that ended is no use here: it
// counts the memory of this process, which the child shares until it executes its program.
func watchMemory(pid int, every time.Duration) (peak func() int64) {
	done := make(chan int64, 1)
	go func() {
		var most int64
		for path := fmt.Sprintf("/proc/%d/status", pid); ; {
			now, ok := highWater(path)
			if !ok {
				done <- most
				return
			}
			most = max(most, now)
			<-time.After(every)
		}
	}()
	return func() int64 { return <-done }
}

// highWater returns the high-water mark of a process in bytes; ok is false for one that ended.
func highWater(path string) (size int64, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	_, rest, found := bytes.Cut(text, []byte("VmHWM:"))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 { // a zombie has none
		return 0, false
	}
	kilobytes, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kilobytes << 10, err == nil
}

// memory returns the most memory, in bytes, that an ADD had.
func (p *plugin) memory(ctx context.Context) (most int64, err error) {
	for n := range memoryRuns {
		cmd := p.command(ctx, "ADD", -1-n, p.secure)
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		peak := watchMemory(cmd.Process.Pid, 0)
		if err := cmd.Wait(); err != nil {
			return 0, err
		}
		most = max(most, peak())
		if err := p.process("DEL", p.secure)(ctx, 0, -1-n); err != nil {
			return 0, err
		}
	}
	return most, nil
}
