// Package api tests what the CRDs promise against a real API server: which objects it takes, what it
// says of the others, what it fills in, and what lists and kubectl show.
package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

var cluster *controlplane.ControlPlane

func TestMain(m *testing.M) { os.Exit(controlplane.Main(m, &cluster)) }

// crds installs the CRDs once; when they do not become Established, every test fails.
var crds = sync.OnceValue(func() error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	return cluster.InstallCRDs(context.Background(), filepath.Join(root, "config", "crd"))
})

// connect returns a client for objects of our types. Its connections go when the test ends.
func connect(t *testing.T) client.Client {
	t.Helper()
	if err := crds(); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme, HTTPClient: httpClient(t)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func httpClient(t *testing.T) *http.Client {
	t.Helper()
	h, err := rest.HTTPClientFor(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	return h
}

// create creates an object that goes when the test ends.
func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

// What the API server says in several places. unchecked follows every complaint about size or type.
const (
	notAddress = "must be an IPv4 or IPv6 address; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are not taken"
	notSubnet  = "must be the IPv4 or IPv6 address of the subnet alone (the prefix length goes into mask); zones, " +
		"IPv4-mapped IPv6 and leading zeros in IPv4 are not taken"
	notAssignable = "must be a subnet whose addresses can be given to pods: 0.0.0.0/8, 240.0.0.0/4, loopback, " +
		"link-local and multicast addresses are not taken"
	notHost = "must be the IPv4 or IPv6 address of a host; zones, IPv4-mapped IPv6 and leading zeros in IPv4 are " +
		"not taken"
	notNameserver = "must be the IPv4 or IPv6 address of a nameserver; zones, IPv4-mapped IPv6 and leading zeros in " +
		"IPv4 are not taken"
	notEntry = "must be an IPv4 or IPv6 address, a range a-b or a~b of two addresses of one family, or a CIDR, " +
		"without blanks"
	notNamespace = "must be the name of a namespace: lower-case letters, digits and -, with a letter or digit at both ends"
	notName      = "is not the name of an address: IPv4 as in 10.0.0.20, IPv6 in full with - for :, as in " +
		"2001-0db8-0000-0000-0000-0000-0000-0020"
	unchecked = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; " +
		"correct the existing errors to complete validation"
)

// compare says how the API server's judgement differs from the complaints wanted: "field: message"
// each, in any order, nothing where it takes the object. It returns "" when they agree.
func compare(t *testing.T, want []string, err error) string {
	t.Helper()
	var got []string
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Details == nil ||
			status.Status().Reason != metav1.StatusReasonInvalid {
			t.Fatalf("the API server did not judge the object: %v", err)
		}
		for _, cause := range status.Status().Details.Causes {
			got = append(got, cause.Field+": "+cause.Message)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); diff != "" {
		return "(-want +got):\n" + diff
	}
	return ""
}

// kubectl runs kubectl and returns what it printed on both streams.
func kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return kubectlInput(t, "", args...)
}

func kubectlInput(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	if err := crds(); err != nil {
		t.Fatal(err)
	}
	cmd := cluster.Kubectl(t.Context(), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
