package main

import (
	"context"
	"fmt"
	"net/http"
)

const poolName = "10.0.0.0"

type step struct {
	title, why string
	run        func(context.Context) error
}

// pod is the body of a request for one of the demo's pods.
type pod struct {
	Host         string `json:"host"`
	ContainerID  string `json:"containerID"`
	PodName      string `json:"podName"`
	PodNamespace string `json:"podNamespace"`
	IPAddr       string `json:"ipAddr,omitempty"`
}

func podOn(host string, n int) pod {
	return pod{
		Host: host, ContainerID: fmt.Sprintf("sandbox-%d", n), PodName: fmt.Sprintf("web-%d", n),
		PodNamespace: "default",
	}
}

const (
	host1 = "10.0.0.11"
	host2 = "10.0.0.12"
)

func (d *demo) steps() []step {
	var first string
	return []step{
		{"Two nodes and four pods",
			"no kubelet runs here: the tour writes what theirs would; the pods ask for addresses",
			func(ctx context.Context) error {
				if err := d.kubectl(ctx, []string{"node/node-1 created", "pod/web-4 created"}, "apply", "-f",
					"hack/demo/cluster.yaml"); err != nil {
					return err
				}
				for n, host := range []string{host1, host2, host2, host2} {
					running := fmt.Sprintf(
						`{"status":{"phase":"Running","hostIP":%q,"conditions":[{"type":"Ready","status":"True"}]}}`,
						host)
					if err := d.kubectl(ctx, []string{"patched"}, "patch", "pod", fmt.Sprintf("web-%d", n+1),
						"--subresource=status",
						"--type=merge", "--patch", running); err != nil {
						return err
					}
				}
				return d.kubectl(ctx, nil, "wait", "--for=condition=Ready", "pods", "--all", "--timeout=60s")
			}},
		{"A pool becomes addresses", "the network team hands over three addresses and says which hosts may use them",
			func(ctx context.Context) error {
				if err := d.kubectl(ctx, []string{"created"}, "apply", "-f",
					"config/samples/bcsnetpool.yaml"); err != nil {
					return err
				}
				return d.until(ctx, []string{"10.0.0.20", "10.0.0.21", "10.0.0.22", "Available"}, "get", "bcsnetips")
			}},
		{"An allocation by POST", "what a CNI plugin sends on ADD", func(ctx context.Context) error {
			a, err := d.call(ctx, http.MethodPost, podOn(host1, 1))
			if err != nil {
				return err
			}
			first = a.Data.IPAddr
			if a.Code != 0 || first == "" || a.Data.Gateway != "10.0.0.1" || a.Data.Mask != 24 {
				return fmt.Errorf("no address with its gateway and mask in the answer")
			}
			return nil
		}},
		{"The same POST again", "kubelets retry: the answer is the same, and nothing is written",
			func(ctx context.Context) error {
				a, err := d.call(ctx, http.MethodPost, podOn(host1, 1))
				if err == nil && a.Data.IPAddr != first {
					err = fmt.Errorf("got %s, before it was %s", a.Data.IPAddr, first)
				}
				return err
			}},
		{"A specific address", "and a request for a taken address is told who has it", func(ctx context.Context) error {
			want := "10.0.0.21"
			if first == want {
				want = "10.0.0.22"
			}
			p := podOn(host2, 2)
			p.IPAddr = first
			a, err := d.call(ctx, http.MethodPost, p)
			if err != nil || a.Reason != "AddressInUse" {
				return fmt.Errorf("expected AddressInUse, got %q, %w", a.Reason, err)
			}
			p.IPAddr = want
			a, err = d.call(ctx, http.MethodPost, p)
			if err == nil && a.Data.IPAddr != want {
				err = fmt.Errorf("got %q", a.Data.IPAddr)
			}
			return err
		}},
		{"The pool exhausted", "three addresses, four pods: the refusal has the counts and the next step",
			func(ctx context.Context) error {
				if a, err := d.call(ctx, http.MethodPost, podOn(host2, 3)); err != nil || a.Code != 0 {
					return fmt.Errorf("the third pod got nothing: %s, %w", a.Message, err)
				}
				a, err := d.call(ctx, http.MethodPost, podOn(host2, 4))
				if err == nil && a.Reason != "PoolExhausted" {
					err = fmt.Errorf("expected PoolExhausted, got %q", a.Reason)
				}
				return err
			}},
		{"What the operator sees", "one command tree, two names: kubectl bcsnet and bcsnetctl",
			func(ctx context.Context) error {
				if err := d.until(ctx, []string{"True"}, "get", "bcsnetpool", poolName, "-o",
					`jsonpath={.status.conditions[?(@.type=="Exhausted")].status}{"\n"}`); err != nil {
					return err
				}
				if err := d.kubectl(ctx, []string{poolName, "100%"}, "bcsnet", "pool", "list"); err != nil {
					return err
				}
				return d.kubectl(ctx, []string{"default", "web-1", host1}, "bcsnet", "lease", "list")
			}},
		{"A release", "what a CNI plugin sends on DEL; sent twice, it changes nothing the second time",
			func(ctx context.Context) error {
				for _, message := range []string{"", "didn't find related BCSNetIP instance for container sandbox-1"} {
					a, err := d.call(ctx, http.MethodDelete, podOn(host1, 1))
					if err != nil {
						return err
					}
					if a.Code != 0 || a.Message != message {
						return fmt.Errorf("code %d, message %q", a.Code, a.Message)
					}
				}
				return nil
			}},
		{"Deleting the pool waits", "two addresses are in use: the pool stops allocating and says what it waits for",
			func(ctx context.Context) error {
				if err := d.kubectl(ctx, nil, "delete", "bcsnetpool", poolName, "--wait=false"); err != nil {
					return err
				}
				if err := d.until(ctx, []string{"2 addresses", host2}, "get", "bcsnetpool", poolName, "-o",
					`jsonpath={.status.conditions[?(@.type=="Draining")].message}{"\n"}`); err != nil {
					return err
				}
				a, err := d.call(ctx, http.MethodPost, podOn(host1, 1))
				if err == nil && a.Code == 0 {
					err = fmt.Errorf("a pool that is being deleted gave an address")
				}
				return err
			}},
		{"A host release",
			"the machine is off: one command frees all its addresses; its node is still Ready here, so that takes " +
				"--force",
			func(ctx context.Context) error {
				return d.kubectl(ctx, []string{"10.0.0."}, "bcsnet", "release-host", host2, "--force")
			}},
		{"The pool goes", "once nobody holds an address, and no request that began before can still take one",
			func(ctx context.Context) error {
				if err := d.kubectl(ctx, nil, "wait", "--for=delete", "bcsnetpool/"+poolName,
					"--timeout=60s"); err != nil {
					return err
				}
				return d.kubectl(ctx, []string{"No resources found"}, "get", "bcsnetpools,bcsnetips")
			}},
	}
}
