package resource

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// deleteTime bounds the wait for the answer to a deletion.
const deleteTime = 10 * time.Second

// Delete deletes an object by name and UID. It returns no error if the object is gone.
func Delete(ctx context.Context, s *app.App, api dynamic.ResourceInterface, name string, uid types.UID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// An interruption does not cancel the request, because then nobody would know whether the deletion has begun.
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteTime)
	defer cancel()
	err := api.Delete(sending, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, DryRun: s.DryRun.Options(),
	})
	if apierrors.IsNotFound(err) && !NoSuchResource(err) {
		return nil
	}
	return Explain(s, err)
}
