package install

import (
	"fmt"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// TestFlowSchema checks that the API server counts what the controller asks to the level that the chart gives it, and
// nobody else's.
func TestFlowSchema(t *testing.T) {
	c := newCluster(t)
	c.helm("install", "bcsnet", c.chart(), "--namespace", controlplane.SystemNamespace, "--create-namespace",
		"--set", "flowSchema.enabled=true")
	flows, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := flows.FlowcontrolV1().FlowSchemas().Get(t.Context(), "bcsnet-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	level, err := flows.FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), "bcsnet-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	controller, err := c.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, controlplane.ControllerName)
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.ServiceAccountConfig(t.Context(), controlplane.SystemNamespace, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	// The API server takes a new schema into account a moment later.
	controlplane.Eventually(t, func() error {
		got, want := counted(t, controller), [2]string{string(schema.UID), string(level.UID)}
		if got != want {
			return fmt.Errorf("counted to %v, want %v", got, want)
		}
		return nil
	})
	if got := counted(t, other); got[0] == string(schema.UID) || got[0] == "" {
		t.Errorf("another ServiceAccount is counted to %v", got)
	}
}

// counted returns the UIDs of the schema and level that the API server names for a request of this user.
func counted(t *testing.T, user *rest.Config) [2]string {
	t.Helper()
	client, err := rest.HTTPClientFor(user)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, user.Host+"/api/v1/nodes", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return [2]string{
		response.Header.Get("X-Kubernetes-Pf-Flowschema-Uid"), response.Header.Get("X-Kubernetes-Pf-Prioritylevel-Uid"),
	}
}
