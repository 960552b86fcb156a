//go:build linux

package bed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is the time that a question to a pod may take.
const patience = 10 * time.Second

// port is where pods answer HTTP.
const port = 8080

// Pod returns a pod of the image, which serves HTTP on port 8080, for a node; an empty name of the node leaves it to
// the scheduler.
func Pod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: PodSpec(node)}
}

// PodSpec returns the specification of Pod, for templates.
func PodSpec(node string) corev1.PodSpec {
	return corev1.PodSpec{
		NodeName:                      node,
		TerminationGracePeriodSeconds: new(int64(1)),
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		Containers: []corev1.Container{{
			Name: "main", Image: Image, ImagePullPolicy: corev1.PullNever, Args: []string{"serve"},
			Ports: []corev1.ContainerPort{{ContainerPort: port}},
			// Ready when it answers; asked from inside, as a node reaches no macvlan link of its own pods.
			StartupProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{
					"/podtool", "get", "http://localhost:8080/",
				}}},
				PeriodSeconds: 1, FailureThreshold: 60,
			},
		}},
	}
}

// In has a pod get a further network of the bed in place of the default one.
func In(network string, pod *corev1.Pod) *corev1.Pod {
	pod.Spec.RuntimeClassName = &network
	return pod
}

// Addresses returns the addresses of a pod, as its kubelet reports them.
func Addresses(pod *corev1.Pod) (addrs []netip.Addr, err error) {
	for _, ip := range pod.Status.PodIPs {
		addr, e := netip.ParseAddr(ip.IP)
		addrs, err = append(addrs, addr), errors.Join(err, e)
	}
	return addrs, err
}

// Get returns what the pod at an address answers to a path, which begins with a slash. The question is asked by the
// fabric: by a station of the network that is no node.
func (b *Bed) Get(ctx context.Context, at netip.Addr, path string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	target := "http://" + netip.AddrPortFrom(at, port).String() + path
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s of the pod at %s: %s: %s", path, at, response.Status, strings.TrimSpace(string(text)))
	}
	return string(text), err
}

// Reach has the pod at one address ask the pod at another one, and returns the answer, which begins with that pod's
// name.
func (b *Bed) Reach(ctx context.Context, from, to netip.Addr) (string, error) {
	peer := "http://" + netip.AddrPortFrom(to, port).String() + "/"
	return b.Get(ctx, from, "/get?"+url.Values{"url": {peer}}.Encode())
}
