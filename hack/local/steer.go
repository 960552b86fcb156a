package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	killVerb, startVerb = "kill", "start"
	// controlSocket takes what kill and start want of the supervisor.
	controlSocket = "control.sock"
)

// steer makes the supervisor kill or start a node.
func steer(ctx context.Context, o options) error {
	s, err := o.readState()
	if err != nil || len(s.Nodes) == 0 {
		return errors.New("no real nodes are up; hint: `make node-up`")
	}
	if !slices.Contains(s.Nodes, o.node) {
		return fmt.Errorf("there is no node %q; hint: %s", o.node, strings.Join(s.Nodes, ", "))
	}
	began := time.Now()
	fmt.Fprintf(os.Stderr, "► %s %s\n", o.verb, o.node)
	dialer := &net.Dialer{}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", o.file(controlSocket))
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://local/"+o.verb+"/"+o.node, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
		return errors.Join(errors.New(strings.TrimSpace(string(text))), err)
	}
	fmt.Fprintf(os.Stderr, "✔ done after %.0f s\n", time.Since(began).Seconds())
	return nil
}

// explainNodes prints how to try a pod on real nodes.
func explainNodes(o options) error {
	fmt.Printf(`
  kubectl get nodes -o wide
  kubectl apply -f examples/real-nodes/web.yaml
  kubectl rollout status statefulset/web
  kubectl get pods -o wide
  kubectl exec web-0 -- /podtool get http://ADDRESS-OF-WEB-1:8080/

A node dies, and comes back:

  make node-kill NODE=n1
  make node-start NODE=n1

Logs are in %s; `+"`make node-down`"+` stops and removes everything.
`, shorten(o.file("logs")))
	return nil
}
