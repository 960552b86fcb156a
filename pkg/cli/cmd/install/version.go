package install

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/resource"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/replica"
)

type versionVerb struct {
	*app.App
	client bool
	format string
}

// versions has the printed versions.
type versions struct {
	Client  string `json:"client"`
	Go      string `json:"go"`
	Cluster string `json:"cluster,omitempty"`
	// Kubernetes is the API server's version. Objects are our resources that it serves.
	Kubernetes string   `json:"kubernetes,omitempty"`
	Group      string   `json:"group,omitempty"`
	Objects    []string `json:"objects,omitempty"`
	// Schemas is current or outdated: whether the cluster's definitions are those of this program.
	Schemas string `json:"schemas,omitempty"`
	// Outdated lists the definitions that differ.
	Outdated   []string           `json:"outdated,omitempty"`
	Controller *controllerVersion `json:"controller,omitempty"`
}

const (
	schemasCurrent  = "current"
	schemasOutdated = "outdated"
)

// NewVersion returns the command version.
func NewVersion(s *app.App) *cobra.Command {
	v := &versionVerb{App: s}
	cmd := &cobra.Command{
		Use: "version", GroupID: "other", Args: app.Takes(0, 0), RunE: app.Runs(v),
		Short: "Show the version, and what the cluster serves",
		Long: `Show the versions of this program and of the API server, which objects of bcsnet
it serves and whether their definitions are this program's, and the controller:
its image, its replicas and which of them leads.`,
		Example: `  bcsnetctl version
  bcsnetctl version --client -o json`,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&v.client, "client", false, "this program only; the cluster is not asked")
	cmd.Flags().StringVarP(&v.format, "output", "o", "", "print `FORMAT`: json|yaml")
	app.Complete(cmd, "output", "json", "yaml")
	return cmd
}

func (v *versionVerb) Validate() error {
	if !slices.Contains([]string{"", "json", "yaml"}, v.format) {
		return app.Usagef("there is no output format %q", v.format).WithHint("the formats are json, yaml")
	}
	return nil
}

func (v *versionVerb) Run(ctx context.Context) error {
	all := versions{Client: v.Version, Go: fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)}
	var err error
	if !v.client {
		err = v.ask(ctx, &all)
	}
	if printed := v.print(all); printed != nil {
		return printed
	}
	return err
}

// ask reads the versions in the cluster.
func (v *versionVerb) ask(ctx context.Context, all *versions) error {
	cfg, err := v.Connect()
	if err != nil {
		return err
	}
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return v.ConfigProblem(err)
	}
	all.Cluster = cfg.Host
	server, err := c.ServerVersionWithContext(ctx)
	if err != nil {
		return resource.Explain(v.App, err)
	}
	all.Kubernetes = server.GitVersion
	served, err := c.ServerResourcesForGroupVersionWithContext(ctx, v1.GroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return (&app.Failure{
			Message: "the cluster does not know the objects of bcsnet: their CRDs are not installed", Cause: err,
		}).WithHint(resource.HintInstall)
	case err != nil:
		return resource.Explain(v.App, err)
	}
	all.Group = served.GroupVersion
	for _, r := range served.APIResources {
		if !strings.Contains(r.Name, "/") {
			all.Objects = append(all.Objects, r.Name)
		}
	}
	slices.Sort(all.Objects)
	return v.askMore(ctx, all)
}

// askMore reads data that only some users may read. If that is forbidden it prints a note and returns no error.
func (v *versionVerb) askMore(ctx context.Context, all *versions) error {
	c, err := v.Dynamic()
	if err != nil {
		return err
	}
	old, err := v.outdated(ctx, c)
	switch {
	case err != nil:
		v.Say.Warn("the definitions of the objects cannot be read: %v", resource.Explain(v.App, err))
	case len(old) > 0:
		all.Schemas, all.Outdated = schemasOutdated, old
	default:
		all.Schemas = schemasCurrent
	}
	all.Controller, err = controllerOf(ctx, c)
	if err != nil {
		v.Say.Warn("the controller cannot be looked at in full: %v", resource.Explain(v.App, err))
	}
	return nil
}

func (v *versionVerb) print(all versions) error {
	var text []byte
	var err error
	switch v.format {
	case "json":
		text, err = json.MarshalIndent(all, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(all)
	default:
		text = v.text(all)
	}
	if err != nil {
		return err
	}
	_, err = v.Out.Write(text)
	return err
}

func (v *versionVerb) text(all versions) []byte {
	text := fmt.Appendf(nil, "client:      %s (%s)\n", all.Client, all.Go)
	if all.Kubernetes != "" {
		text = fmt.Appendf(text, "cluster:     %s, Kubernetes %s\n", all.Cluster, all.Kubernetes)
	}
	if all.Group != "" {
		text = fmt.Appendf(text, "objects:     %s: %s\n", all.Group, strings.Join(all.Objects, ", "))
	}
	switch all.Schemas {
	case schemasCurrent:
		text = fmt.Appendf(text, "schemas:     current\n")
	case schemasOutdated:
		text = fmt.Appendf(text, "schemas:     not this program's: %s; to install them: %s\n",
			strings.Join(all.Outdated, ", "), v.Called("bcsnetctl install --crds-only"))
	}
	if all.Controller != nil {
		text = fmt.Appendf(text, "controller:  %s\n", all.Controller)
	}
	return text
}

// controllerVersion describes the controller in the cluster.
type controllerVersion struct {
	// Deployed means that the cluster has the Deployment of the manifests.
	Deployed bool   `json:"deployed"`
	Image    string `json:"image,omitempty"`
	Replicas int64  `json:"replicas"`
	Ready    int64  `json:"ready"`
	// Leader is the replica that runs the reconcilers.
	Leader string `json:"leader,omitempty"`
}

// controllerOf reads the Deployment and the leader's Lease.
func controllerOf(ctx context.Context, c dynamic.Interface) (*controllerVersion, error) {
	d, err := c.Resource(resource.DeploymentResource()).Namespace(resource.SystemNamespace).
		Get(ctx, resource.ControllerName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &controllerVersion{}, nil
	case err != nil:
		return nil, err
	}
	found := &controllerVersion{Deployed: true, Image: resource.Image(*d)}
	found.Replicas, _, _ = unstructured.NestedInt64(d.Object, "spec", "replicas")
	found.Ready, _, _ = unstructured.NestedInt64(d.Object, "status", "readyReplicas")
	lease, err := resource.LeaderLease(ctx, c)
	if lease.HolderIdentity != nil {
		found.Leader = replica.Parse(*lease.HolderIdentity).Name
	}
	return found, err
}

// outdated names our definitions that are missing in the cluster, or differ from this program's.
func (v *versionVerb) outdated(ctx context.Context, c dynamic.Interface) ([]string, error) {
	all, err := resource.Definitions(ctx, c)
	var names []string
	for _, crd := range all {
		if crd.Missing || crd.Difference != "" {
			names = append(names, crd.Name)
		}
	}
	return names, err
}

func (c *controllerVersion) String() string {
	if !c.Deployed {
		return "no Deployment " + resource.SystemNamespace + "/" + resource.ControllerName
	}
	text := fmt.Sprintf("%s, %d of %s ready", c.Image, c.Ready, humanize.Plural(c.Replicas, "replica"))
	if c.Leader != "" {
		text += ", leader " + c.Leader
	}
	return text
}
