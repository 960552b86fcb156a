package http_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addWhileStopped has an ADD that does not say when it began wait in the socket of a replica that is stopped, while
// another replica serves it, releases its container, and gives the pod's address to the next one. The function that
// it returns, called when the stopped replica runs on, sees that the ADD is refused and the next container keeps the
// address. The client of the ADD waits all the time: nobody notices by its absence that the ADD is old.
func (p program2) addWhileStopped(t *testing.T, stopped, other int) (after func()) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "waits"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "main"}}},
	}
	if err := p.admin.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	of := func(container string) object {
		return object{"host": "10.0.0.11", "containerID": container, "podNamespace": "default", "podName": "waits", "podUID": string(pod.UID)}
	}
	old, next := of(newID()), of(newID())
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.all[stopped].URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: replica\r\nContent-Length: %d\r\n\r\n%s", prefix, len(body), body); err != nil {
		t.Fatal(err)
	}
	c := p.caller(other)
	c.do(t, "POST", prefix, old).done(t)
	c.do(t, "DELETE", prefix, old).done(t)
	address := c.do(t, "POST", prefix, next).done(t)["ipAddr"]
	return func() {
		defer conn.Close()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Reason string `json:"reason"`
		}
		if err := json.Unmarshal(text, &got); err != nil || !slices.Contains([]string{"ContainerDeleted", "ContainerSuperseded"}, got.Reason) {
			t.Errorf("the ADD that waited is answered with %s", text)
		}
		for i := range p.all {
			if now := p.caller(i).do(t, "POST", prefix, next).done(t)["ipAddr"]; now != address {
				t.Errorf("the next container had %v and is told %v", address, now)
			}
		}
		c.do(t, "DELETE", prefix, next).done(t)
	}
}
