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
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// put writes a request into the socket of a replica; the function that it returns waits for the answer.
func (p program2) put(t *testing.T, replica int, method, path string, body []byte) (answer func() []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.all[replica].URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", method, path,
		len(body), body); err != nil {
		t.Fatal(err)
	}
	return func() []byte {
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
		return text
	}
}

// releaseHostWhileStopped has the release of a host wait in the socket of a replica that is stopped, while the host
// gets an address of another one. The function that it returns, called when the stopped replica runs on, sees that the
// host keeps the address: it is newer than what was asked for.
func (p program2) releaseHostWhileStopped(t *testing.T, stopped, other int) (after func()) {
	t.Helper()
	body := object{"host": "10.0.0.11", "owner": "on-again", "containerID": newID()}
	sent := time.Now()
	answer := p.put(t, stopped, "DELETE", prefix+"/host/10.0.0.11", nil)
	controlplane.Until(t, "the release to be older than what clocks may differ by",
		func() bool { return time.Since(sent) > 4*time.Second })
	c := p.caller(other)
	address := c.do(t, "POST", prefix, body).done(t)["ipAddr"]
	return func() {
		var got struct {
			Code int      `json:"code"`
			Data []string `json:"data"`
		}
		text := answer()
		if err := json.Unmarshal(text, &got); err != nil || got.Code != 0 || slices.Contains(got.Data, fmt.Sprint(address)) {
			t.Errorf("%v was given after the release of its host was asked for, which is answered with %s", address, text)
		}
		if again := c.do(t, "POST", prefix, body).done(t)["ipAddr"]; again != address {
			t.Errorf("the owner had %v and is told %v", address, again)
		}
		c.do(t, "DELETE", prefix, body).done(t)
	}
}

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
		return object{
			"host": "10.0.0.11", "containerID": container, "podNamespace": "default", "podName": "waits", "podUID": string(pod.UID),
		}
	}
	old, next := of(newID()), of(newID())
	body, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	answer := p.put(t, stopped, "POST", prefix, body)
	c := p.caller(other)
	c.do(t, "POST", prefix, old).done(t)
	c.do(t, "DELETE", prefix, old).done(t)
	address := c.do(t, "POST", prefix, next).done(t)["ipAddr"]
	return func() {
		text := answer()
		var got struct {
			Reason string `json:"reason"`
		}
		if err := json.Unmarshal(text, &got); err != nil ||
			!slices.Contains([]string{"ContainerDeleted", "ContainerSuperseded"}, got.Reason) {
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
