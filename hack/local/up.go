package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ready ends the report of a supervisor whose programs all run. Any other end is an error.
const ready = "ready"

// progress begins the lines by which the supervisor reports what it is about to do.
const progress = "► "

// up starts a supervisor that outlives us, and waits for its report.
func up(ctx context.Context, o options) error {
	if _, err := os.Stat(o.controller); err != nil && !o.noController {
		return fmt.Errorf("%w; hint: run `make build` first", err)
	}
	if err := o.createLock(); err != nil {
		return err
	}
	lock, err := o.lock()
	if errors.Is(err, errHeld) {
		if _, err := o.readState(); err != nil {
			return errors.New("another call is just starting it; hint: wait for that, or `make down`")
		}
		fmt.Fprintln(os.Stderr, "✔ already up")
		return explain(o)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := o.unpublish(); err != nil {
		return err
	}
	if o.nodes == 0 {
		fmt.Fprintln(os.Stderr, "► starting the control plane and the controller")
	}
	started := time.Now()
	if err := launch(ctx, o, lock); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "✔ up after %.0f s\n", time.Since(started).Seconds())
	return explain(o)
}

// launch starts the supervisor in a session of its own and returns when it reports.
func launch(ctx context.Context, o options, lock *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(o.file("supervisor.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()

	files := []*os.File{lock, write} // lockFD and reportFD there
	args := append([]string{superviseVerb}, o.args()...)
	var supervisor *exec.Cmd
	if o.nodes > 0 {
		supervisor, err = inFabric(args, files)
	} else {
		supervisor = exec.Command(self, args...)
		supervisor.ExtraFiles, supervisor.SysProcAttr = files, &syscall.SysProcAttr{}
	}
	if err != nil {
		return err
	}
	supervisor.Stdout, supervisor.Stderr = log, log
	supervisor.SysProcAttr.Setsid = true
	err = supervisor.Start()
	write.Close() // the supervisor's end is now the only one: when it goes, we read EOF
	if err != nil {
		return err
	}
	// A Ctrl-C does not reach the other session by itself.
	forward := context.AfterFunc(ctx, func() { _ = supervisor.Process.Signal(syscall.SIGTERM) })
	defer forward()
	var report strings.Builder
	lines := bufio.NewScanner(read)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), progress) {
			fmt.Fprintln(os.Stderr, lines.Text())
			continue
		}
		report.WriteString(lines.Text() + "\n")
	}
	switch text := strings.TrimSpace(report.String()); {
	case lines.Err() != nil:
		return lines.Err()
	case text == ready:
		return nil
	case text != "":
		return errors.New(text)
	default:
		return fmt.Errorf("the supervisor died; hint: see %s", log.Name())
	}
}

func explain(o options) error {
	s, err := o.readState()
	if err != nil {
		return err
	}
	fmt.Printf("\n  . %s\n", shorten(o.file("env")))
	names := "KUBECONFIG and PATH"
	if s.URL != "" {
		names = "KUBECONFIG, BCSNET_URL and PATH"
	}
	fmt.Printf("\nsets %s; then for example:\n", names)
	if len(s.Nodes) > 0 {
		return explainNodes(o)
	}
	fmt.Print("\n  kubectl get bcsnetpools\n  kubectl bcsnet --help\n")
	if s.URL != "" {
		fmt.Println("  curl -s $BCSNET_URL/openapi.json")
	}
	fmt.Printf("\nLogs are in %s; `make down` stops and removes everything.\n", shorten(o.file("logs")))
	return nil
}

// shorten makes a path relative to the working directory when that is below it.
func shorten(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(wd, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}
