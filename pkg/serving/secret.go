package serving

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	// SecretName is the Secret with the CA and its key.
	SecretName = "bcsnet-controller-ca" //nolint:gosec // a name, and no secret
	// ConfigMapName is the ConfigMap with the certificates that clients trust.
	ConfigMapName = SecretName
	// RotateAnnotation on the Secret requests a new CA, whatever its value. It is removed when the new CA exists.
	RotateAnnotation = "networkextension.bkbcs.tencent.com/rotate"
)

// store reads and writes the objects of the CA.
type store struct {
	core      corev1client.CoreV1Interface
	namespace string
}

// read returns the Secret; nil if there is none.
func (s store) read(ctx context.Context) (*corev1.Secret, error) {
	o, err := s.core.Secrets(s.namespace).Get(ctx, SecretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// create creates the Secret. If another replica was faster, it returns that replica's Secret: there are never two.
func (s store) create(ctx context.Context, t trust) (*corev1.Secret, error) {
	data, err := t.encode()
	if err != nil {
		return nil, err
	}
	o, err := s.core.Secrets(s.namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: SecretName}, Type: corev1.SecretTypeTLS, Data: data,
	}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return o, err
	}
	if o, err = s.read(ctx); o == nil && err == nil {
		err = fmt.Errorf("the Secret %s/%s was made and deleted by others", s.namespace, SecretName)
	}
	return o, err
}

// update writes a trust if the Secret still has the version on which the trust is based. A conflict is an error.
func (s store) update(ctx context.Context, over *corev1.Secret, t trust) (*corev1.Secret, error) {
	data, err := t.encode()
	if err != nil {
		return nil, err
	}
	o := over.DeepCopy()
	o.Data = data
	if t.next != nil {
		delete(o.Annotations, RotateAnnotation)
	}
	return s.core.Secrets(s.namespace).Update(ctx, o, metav1.UpdateOptions{})
}

// publish writes a bundle into the ConfigMap, unless the ConfigMap already has it.
func (s store) publish(ctx context.Context, bundle []byte) error {
	published := s.core.ConfigMaps(s.namespace)
	o, err := published.Get(ctx, ConfigMapName, metav1.GetOptions{})
	data := map[string]string{keyBundle: string(bundle)}
	if apierrors.IsNotFound(err) {
		_, err = published.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: ConfigMapName}, Data: data,
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil || maps.Equal(o.Data, data) {
		return err
	}
	o.Data = data
	_, err = published.Update(ctx, o, metav1.UpdateOptions{})
	return err
}
