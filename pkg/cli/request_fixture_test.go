package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	cni "github.com/bcsnet/bcsnet/test/plugin"
)

// request HOST NAMESPACE/POD CONTAINER [POLICY [FAMILY,...]] asks the controller for the pod's addresses, as a CNI
// plugin does, and prints a line for each, or why there is none.
func (f *fixture) request(ctx context.Context, ts *testscript.TestScript, args []string) error {
	body := requestOf(args)
	if len(args) > 3 {
		body.IPFamilyPolicy = args[3]
	}
	if len(args) > 4 {
		body.IPFamilies = strings.Split(args[4], ",")
	}
	answer, err := cni.Ask(ctx, http.DefaultClient, http.MethodPost, f.controller.URL, body)
	if err != nil {
		return err
	}
	for _, ip := range answer.Address.IPs {
		line := fmt.Sprintf("%s %s/%d %s", ip.Pool, ip.IPAddr, ip.Mask, ip.MacAddr)
		if _, err := fmt.Fprintln(ts.Stdout(), strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	if answer.Code != 0 {
		_, err = fmt.Fprintf(ts.Stdout(), "%s: %s\n", answer.Reason, answer.Message)
	}
	return err
}

// ended HOST NAMESPACE/POD CONTAINER says that the container has ended, as a CNI plugin does, and prints the answer.
func (f *fixture) ended(ctx context.Context, ts *testscript.TestScript, args []string) error {
	answer, err := cni.Ask(ctx, http.DefaultClient, http.MethodDelete, f.controller.URL, requestOf(args))
	if err == nil {
		_, err = fmt.Fprintf(ts.Stdout(), "%d %s\n", answer.Code, answer.Message)
	}
	return err
}

// get PATH prints what the controller answers.
func (f *fixture) get(ctx context.Context, ts *testscript.TestScript, args []string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.controller.URL+args[0], http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	return err
}

// requestOf reads HOST NAMESPACE/POD CONTAINER.
func requestOf(args []string) wire.AllocateRequest {
	namespace, pod, _ := strings.Cut(args[1], "/")
	return wire.AllocateRequest{Host: args[0], PodNamespace: namespace, PodName: pod, ContainerID: args[2]}
}
