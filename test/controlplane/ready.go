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

// check returns nil when a condition holds, else what is missing.
type check = func(context.Context) error

// answersOK holds when a GET of url gives 200.
func (cp *ControlPlane) answersOK(url string) check {
	return func(ctx context.Context) error { return getOK(ctx, cp.http, url) }
}

func getOK(ctx context.Context, client *http.Client, url string) error {
	// A server that accepts but does not answer yet must not cost us the whole start.
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

// hasServiceAccount holds when the ServiceAccount exists.
func (cp *ControlPlane) hasServiceAccount(namespace, name string) check {
	return func(ctx context.Context) error {
		_, err := cp.clients.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

// allOf holds when all the checks do.
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

// waitForNamespace returns when the namespace exists: the API server creates its own ones only
// after it has become ready.
func (cp *ControlPlane) waitForNamespace(ctx context.Context, name string) error {
	return wait.PollUntilContextTimeout(ctx, pollInterval, startTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := cp.clients.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}
