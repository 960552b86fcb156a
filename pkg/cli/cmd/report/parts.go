package report

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// maxLog bounds the log of one pod, in bytes.
const maxLog = 8 << 20

// parts lists the files of a report.
func (v *report) parts(ctx context.Context) ([]part, error) {
	c, err := v.Dynamic()
	if err != nil {
		return nil, err
	}
	events := c.Resource(resource.EventResource())
	pods := c.Resource(resource.PodResource()).Namespace(resource.SystemNamespace)
	parts := []part{
		v.command("version.json", "versions", "version", "-o", "json"),
		v.definition(c, v1.PoolResource),
		v.definition(c, v1.IPResource),
		v.definition(c, v1.ClaimResource),
		v.objects("pools.jsonl", "pools", c.Resource(resource.Of(v1.PoolResource)), "", nil),
		v.objects("addresses.jsonl", "addresses", c.Resource(resource.Of(v1.IPResource)), "", nil),
		v.objects("claims.jsonl", "claims", c.Resource(resource.Of(v1.ClaimResource)), "", nil),
		v.objects("events.jsonl", "events of pools and claims", events,
			fields.OneTermEqualSelector(resource.EventGroupField, v1.GroupVersion.String()).String(), nil),
		v.objects("nodes.jsonl", "nodes", c.Resource(resource.NodeResource()), "", lean),
		v.objects("system/deployment.jsonl", "Deployment of the controller",
			c.Resource(resource.DeploymentResource()).Namespace(resource.SystemNamespace), follow.Named(resource.ControllerName),
			nil),
		v.objects("system/pods.jsonl", "pods of "+resource.SystemNamespace, pods, "", nil),
		v.objects("system/events.jsonl", "events of "+resource.SystemNamespace, events.Namespace(resource.SystemNamespace),
			"", nil),
	}
	if v.has("doctor") {
		parts = append(parts, v.command("doctor.json", "findings of doctor", "doctor", "-o", "json"))
	}
	return append(parts, v.logs(ctx, pods)...), nil
}

func (v *report) definition(c dynamic.Interface, name string) part {
	return v.objects("definitions/"+name+".jsonl", "definition of "+name, c.Resource(resource.CRDResource()),
		follow.Named(name+"."+v1.GroupVersion.Group), nil)
}

// objects returns a file with one object a line; trim, where given, removes fields first.
func (v *report) objects(
	file, what string, api dynamic.ResourceInterface, selector string, trim func(*unstructured.Unstructured),
) part {
	return part{file: file, what: what, write: func(ctx context.Context, w io.Writer) (n int, err error) {
		lines := json.NewEncoder(w)
		for options := (metav1.ListOptions{FieldSelector: selector, Limit: resource.PageSize}); ; {
			page, err := api.List(ctx, options)
			if err != nil {
				return n, err
			}
			for i := range page.Items {
				o := &page.Items[i]
				if trim != nil {
					trim(o)
				}
				strip(o)
				if err := lines.Encode(o.Object); err != nil {
					return n, err
				}
				n++
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				return n, nil
			}
		}
	}}
}

// logs returns a file for each pod of the controller, and one more for the container before its restart, where there
// was one.
func (v *report) logs(ctx context.Context, pods dynamic.ResourceInterface) []part {
	found, err := pods.List(ctx, metav1.ListOptions{Limit: resource.PageSize})
	if err != nil {
		return nil // the list of pods says that, too
	}
	var parts []part
	for _, p := range found.Items {
		parts = append(parts, v.log(p.GetName(), false))
		if restarted(p) {
			parts = append(parts, v.log(p.GetName(), true))
		}
	}
	return parts
}

func (v *report) log(pod string, previous bool) part {
	p := part{file: "system/logs/" + pod + ".log", what: "log of " + pod}
	if previous {
		p = part{file: "system/logs/" + pod + ".previous.log", what: "log of " + pod + " before its restart"}
	}
	p.write = func(ctx context.Context, w io.Writer) (int, error) {
		cfg, err := v.Connect()
		if err != nil {
			return -1, err
		}
		c, err := corev1client.NewForConfig(cfg)
		if err != nil {
			return -1, err
		}
		stream, err := c.Pods(resource.SystemNamespace).GetLogs(pod,
			&corev1.PodLogOptions{Previous: previous, LimitBytes: new(int64(maxLog)), Timestamps: true}).Stream(ctx)
		if err != nil {
			return -1, err
		}
		defer stream.Close()
		_, err = io.Copy(w, stream)
		return -1, err
	}
	return p
}

func (v *report) has(name string) bool {
	found, _, err := v.cmd.Root().Find([]string{name})
	return err == nil && found.Name() == name
}

// command returns a file with the output of another command of this program. Findings of that command are no error.
func (v *report) command(file, what string, args ...string) part {
	return part{file: file, what: what, write: func(ctx context.Context, w io.Writer) (int, error) {
		out, errOut := v.Out, v.Say.W
		v.App.Out, v.Say.W = terminal.NewWriter(w, terminal.Terminal{}), io.Discard
		defer func() { v.App.Out, v.Say.W = out, errOut }()
		cmd, rest, err := v.cmd.Root().Find(args)
		if err != nil {
			return -1, err
		}
		if err := cmd.ParseFlags(rest); err != nil {
			return -1, err
		}
		cmd.SetContext(ctx)
		err = cmd.RunE(cmd, cmd.Flags().Args())
		if f, ok := errors.AsType[*app.Failure](err); ok && f.Code == app.ExitFindings {
			err = nil
		}
		return -1, err
	}}
}

// restarted reports whether a container of a pod has restarted.
func restarted(pod unstructured.Unstructured) bool {
	all, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, c := range all {
		if m, ok := c.(map[string]any); ok {
			n, _, _ := unstructured.NestedInt64(m, "restartCount")
			if n > 0 {
				return true
			}
		}
	}
	return false
}
