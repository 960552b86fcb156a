package controlplane

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// check returns nil if a condition holds, else an error that says what is missing.
type check = func(context.Context) error

// answersOK checks that a GET of url returns 200.
func (cp *ControlPlane) answersOK(url string) check {
	return func(ctx context.Context) error { return getOK(ctx, cp.http, url) }
}

func getOK(ctx context.Context, client *http.Client, url string) error {
	// A server that accepts a connection without answering must not use up the whole start.
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
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %s", url, resp.Status, body)
	}
	return nil
}

// hasServiceAccount checks that a ServiceAccount exists.
func (cp *ControlPlane) hasServiceAccount(namespace, name string) check {
	return func(ctx context.Context) error {
		_, err := cp.clients.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

// allOf combines checks. It fails with the first that fails.
func allOf(checks ...check) check {
	return func(ctx context.Context) error {
		for _, c := range checks {
			if err := c(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// waitForNamespace waits until a namespace exists: the API server creates its own ones only after it is ready.
func (cp *ControlPlane) waitForNamespace(ctx context.Context, name string) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := cp.clients.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}
