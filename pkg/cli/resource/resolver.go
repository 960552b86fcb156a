package resource

import (
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// NewResolver returns a resolver that finds the policies of pods by reads from the API server with the user's rights.
// It assumes that the controller has --ipam-claims but not --shared-pools-for-all, because the cluster does not show
// the controller's flags.
func NewResolver(s *app.App) (*workload.Resolver, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	owners, err := workload.NewOwners(cfg, h, s.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, s.ConfigProblem(err)
	}
	api, err := NewClaims(s)
	if err != nil {
		return nil, err
	}
	return &workload.Resolver{
		Owners: owners, Namespace: SystemNamespace, ClaimsFor: api.MadeFor, IPAMClaims: true,
		ServesShared: api.servesShared,
	}, nil
}
