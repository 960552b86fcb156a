package cli

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// TestDoctorLooksTwice: what the snapshot took for a leak stays when the pod is there after all, when its
// holder has changed, and when the pod cannot be read.
func TestDoctorLooksTwice(t *testing.T) {
	f := newFixture(t)
	f.havePool(t)
	f.haveReadyNode(t, "node-1", "10.0.0.11")
	there := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "there-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if err := f.client.Create(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	holders := map[string]string{
		"10.1.0.20": "default/there-0", "10.1.0.21": "default/moved-0", "10.1.0.22": "default/broken-0", "10.1.0.23": "default/gone-0",
		"10.1.0.24": "default/slow-0",
	}
	for address, holder := range holders {
		f.haveLease(t, address, "10.0.0.11", holder)
		if err := f.aged(t.Context(), nil, []string{address}); err != nil {
			t.Fatal(err)
		}
	}
	var slow v1.BCSNetIP // its pod had ten minutes to end in when somebody deleted it by force
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "10.1.0.24"}, &slow); err != nil {
		t.Fatal(err)
	}
	slow.Status.TerminationGracePeriodSeconds = 600
	if err := f.client.Update(t.Context(), &slow); err != nil {
		t.Fatal(err)
	}
	url := proxy(t, func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		answer := func(code int, body string) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(code)
			_, _ = io.WriteString(rw, body)
		}
		switch {
		case r.URL.Path == "/api/v1/pods": // an API server that does not know of any pod yet
			answer(http.StatusOK, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		case strings.HasSuffix(r.URL.Path, "/pods/broken-0"):
			answer(
				http.StatusForbidden,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"a webhook says no"}`)
		case strings.HasSuffix(r.URL.Path, "/pods/moved-0"): // meanwhile its address goes to another
			f.haveLease(t, "10.1.0.21", "10.0.0.11", "default/other-0")
			next.ServeHTTP(rw, r)
		default:
			next.ServeHTTP(rw, r)
		}
	})
	_, stderr := f.call(t, "--server", url, "doctor", "--only", "leaks", "--fix", "--yes", "--settle=100ms", "-o", "name")
	contains(t, stderr,
		"10.1.0.20 is not released: pod default/there-0 is there and may use it\n",
		"10.1.0.21 is not released: somebody else has changed it\n",
		"✗ 10.1.0.22 was not released: a webhook says no",
		"✔ 10.1.0.23 released: pod default/gone-0 does not exist",
		"10.1.0.24 is not released: its containers may still run: this has not been so for 10m0.1s, the time that its pod may take to end\n",
		"[exit 1]")
	for address, holder := range map[string]string{
		"10.1.0.20": "there-0", "10.1.0.21": "other-0", "10.1.0.22": "broken-0", "10.1.0.23": "", "10.1.0.24": "slow-0",
	} {
		var ip v1.BCSNetIP
		if err := f.client.Get(t.Context(), client.ObjectKey{Name: address}, &ip); err != nil {
			t.Fatal(err)
		}
		if ip.Status.PodName != holder {
			t.Errorf("%s is held by %q, want %q", address, ip.Status.PodName, holder)
		}
	}
}
