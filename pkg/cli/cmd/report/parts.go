package report

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/pager"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/follow"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// maxLog bounds one log, in bytes.
const maxLog = 8 << 20

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
		v.definition(c, v1.HistoryResource),
		v.objects("pools.jsonl", "pools", c.Resource(resource.Of(v1.PoolResource)), "", nil),
		v.objects("addresses.jsonl", "addresses", c.Resource(resource.Of(v1.IPResource)), "", nil),
		v.objects("claims.jsonl", "claims", c.Resource(resource.Of(v1.ClaimResource)), "", nil),
		v.objects("events.jsonl", "events of pools and claims", events,
			fields.OneTermEqualSelector(resource.EventGroupField, v1.GroupVersion.String()).String(), nil),
		v.objects("nodes.jsonl", "nodes", c.Resource(resource.NodeResource()), "", lean),
		v.objects("system/deployment.jsonl", "Deployment of the controller",
			c.Resource(resource.DeploymentResource()).Namespace(resource.SystemNamespace),
			follow.Named(resource.ControllerName), nil),
		v.objects("system/pods.jsonl", "pods of "+resource.SystemNamespace, pods, "", nil),
		v.objects("system/events.jsonl", "events of "+resource.SystemNamespace,
			events.Namespace(resource.SystemNamespace), "", nil),
		v.command("doctor.json", "findings of doctor", "doctor", "-o", "json"),
	}
	return append(parts, v.logs(ctx)...), nil
}

func (v *report) definition(c dynamic.Interface, name string) part {
	return v.objects("definitions/"+name+".jsonl", "definition of "+name, c.Resource(resource.CRDResource()),
		follow.Named(name+"."+v1.GroupVersion.Group), nil)
}

// objects returns a file with one object per line. trim removes fields first; it may be nil.
func (v *report) objects(
	file, what string, api dynamic.ResourceInterface, selector string, trim func(*unstructured.Unstructured),
) part {
	return part{file: file, what: what, write: func(ctx context.Context, w io.Writer) (n int, err error) {
		lines := json.NewEncoder(w)
		pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object,
			error) {
			return api.List(ctx, o)
		})
		err = pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: selector}, func(item runtime.Object) error {
			o := item.(*unstructured.Unstructured)
			if trim != nil {
				trim(o)
			}
			strip(o)
			n++
			return lines.Encode(o.Object)
		})
		return n, err
	}}
}

// logs returns a file for each pod of the controller, and another one for a container before its restart.
func (v *report) logs(ctx context.Context) (parts []part) {
	c, err := resource.CoreClient(v.App)
	if err != nil {
		return nil // so says every part
	}
	pods := c.Pods(resource.SystemNamespace)
	found, err := pods.List(ctx, metav1.ListOptions{Limit: resource.PageSize})
	if err != nil {
		return nil // the part with the list of pods reports the same error
	}
	for _, p := range found.Items {
		parts = append(parts, log(pods, p.Name, false))
		if slices.ContainsFunc(p.Status.ContainerStatuses,
			func(c corev1.ContainerStatus) bool { return c.RestartCount > 0 }) {
			parts = append(parts, log(pods, p.Name, true))
		}
	}
	return parts
}

func log(pods corev1client.PodInterface, pod string, previous bool) part {
	p := part{file: "system/logs/" + pod + ".log", what: "log of " + pod}
	if previous {
		p = part{file: "system/logs/" + pod + ".previous.log", what: "log of " + pod + " before its restart"}
	}
	p.write = func(ctx context.Context, w io.Writer) (int, error) {
		stream, err := pods.GetLogs(pod,
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

// command returns a file with the output of another command of this program. Findings are not errors.
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
