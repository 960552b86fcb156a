package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// demo is the stage: what runs, and where the tour is shown.
type demo struct {
	root       string
	cp         *controlplane.ControlPlane
	controller *controlplane.Controller
	out        io.Writer
	step       int
}

func (d *demo) title(what, why string) {
	d.step++
	fmt.Fprintf(d.out, "\n── %d. %s\n   %s\n", d.step, what, why)
}

func (d *demo) note(format string, args ...any) { fmt.Fprintf(d.out, "✔ "+format+"\n", args...) }

// kubectl shows a command and its output, and wants the output to hold some words.
func (d *demo) kubectl(ctx context.Context, wants []string, args ...string) error {
	fmt.Fprintf(d.out, "$ kubectl %s\n", strings.Join(args, " "))
	cmd := d.cp.Kubectl(ctx, args...)
	cmd.Dir = d.root
	cmd.Env = append(cmd.Env, "PATH="+filepath.Join(d.root, "bin")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	fmt.Fprint(d.out, string(out))
	if err != nil {
		return fmt.Errorf("kubectl %s: ended with %w", args[0], err)
	}
	return contains(string(out), wants)
}

// until repeats a quiet kubectl until its output holds some words, then shows it.
func (d *demo) until(ctx context.Context, wants []string, args ...string) error {
	var out []byte
	for {
		out, _ = d.cp.Kubectl(ctx, args...).CombinedOutput()
		if contains(string(out), wants) == nil {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("kubectl %s never showed %q; at last: %s", strings.Join(args, " "), wants, out)
		case <-time.After(50 * time.Millisecond):
		}
	}
	fmt.Fprintf(d.out, "$ kubectl %s\n%s", strings.Join(args, " "), out)
	return nil
}

func contains(text string, wants []string) error {
	for _, w := range wants {
		if !strings.Contains(text, w) {
			return fmt.Errorf("%q is not in the output", w)
		}
	}
	return nil
}

// answer has what the steps look at of an envelope. Its data is an allocation, or what was released.
type answer struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    struct {
		IPAddr  string `json:"ipAddr"`
		Gateway string `json:"gateway"`
		Mask    int    `json:"mask"`
	} `json:"data"`
	Reason string `json:"reason"`
}

// call sends a request as a CNI plugin does, shows it as a curl line, and shows the answer.
func (d *demo) call(ctx context.Context, method string, body any) (a answer, err error) {
	url := d.controller.URL + wire.Prefix
	payload, err := json.Marshal(body)
	if err != nil {
		return a, err
	}
	fmt.Fprintf(d.out, "$ curl -X %s -H 'Content-Type: application/json' -d '%s' %s\n", method, payload, url)
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(payload))
	if err != nil {
		return a, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return a, err
	}
	fmt.Fprint(d.out, string(text))
	return a, json.Unmarshal(text, &a)
}
