package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// status prints one line per part, and fails unless all are ready.
func status(ctx context.Context, o options) error {
	lock, err := o.lock()
	if err == nil {
		lock.Close()
	}
	if !errors.Is(err, errHeld) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return errors.New("nothing is up; hint: `make up`")
	}
	s, err := o.readState()
	if err != nil {
		return errors.New("it is just starting")
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", o.file("kubeconfig"))
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	problems := show(ctx, client, "control plane", s.APIServer, s.APIServer)
	if s.URL != "" {
		problems = errors.Join(problems, show(ctx, client, "controller", s.URL, s.Health))
	}
	fmt.Printf("%-14s %-9s %s\n", "logs", "", shorten(o.file("logs")))
	return problems
}

func show(ctx context.Context, client *http.Client, part, url, base string) error {
	err := isReady(ctx, client, base+"/readyz")
	word := "ready"
	if err != nil {
		word = "not ready"
		err = fmt.Errorf("%s: %w", part, err)
	}
	fmt.Printf("%-14s %-9s %s\n", part, word, url)
	return err
}

func isReady(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	}
	return nil
}
