package rest

import (
	"context"
	_ "embed"
	"encoding/json"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/allocator"
	"github.com/bcsnet/bcsnet/pkg/claim"
	"github.com/bcsnet/bcsnet/pkg/gone"
	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/pkg/ipam/index"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
	"github.com/bcsnet/bcsnet/pkg/workload"
)

// Service answers requests. The caller limits the number of concurrent list requests. Errors with a reason for the
// client are *ipam.Refusal; StatusOf returns their HTTP status.
type Service struct {
	Index  *index.Index
	Leases *store.Client
	// Cached reads pods and claims from the watch caches; Live reads claims from the API server; Claims writes claims.
	Cached, Live client.Reader
	Claims       client.Writer
	Owners       *workload.Owners
	// Gone decides whether the pod in a lease no longer has the address. If live is true, it reads the pod from the API
	// server; otherwise it trusts the cache.
	Gone func(ctx context.Context, l lease.Lease, live bool) (gone.Decision, error)
	// Policies finds the policy of a pod whose claim does not exist yet.
	Policies claim.Policies
	// Namespace is the controller's namespace, which contains the claims of shared pools.
	Namespace string
	// Preallocate makes a claim take its addresses before pods ask. The returned stock is also valid with an error.
	Preallocate func(ctx context.Context, c *v1.BCSNetIPClaim) (allocator.Stock, error)
}

// StatusOf returns the HTTP status of a refusal. Everything that is not the fault of the request is a server error,
// because galaxy has no other status for it.
func StatusOf(why *ipam.Refusal) int {
	switch why.Reason {
	case ipam.ReasonBadRequest, ipam.ReasonMissingField, ipam.ReasonBadAddress, ipam.ReasonAddressInUse:
		return http.StatusBadRequest
	case ipam.ReasonUnauthenticated:
		return http.StatusUnauthorized
	case ipam.ReasonPlainHTTP, ipam.ReasonNotPermitted:
		return http.StatusForbidden
	case ipam.ReasonTooManyRequests:
		return http.StatusTooManyRequests
	case ipam.ReasonNotFound:
		return http.StatusNotFound
	default:
		return http.StatusInternalServerError
	}
}

// Paths of galaxy's Swagger documents.
const (
	SwaggerList = "/apidocs.json"
	SwaggerV1   = "/apidocs.json/v1"
)

//go:embed swagger.json
var swaggerV1 []byte

// SwaggerDocuments returns, for a server at a URL, the list of APIs and the description of its only API, in Swagger
// 1.2.
func SwaggerDocuments(base string) (list, v1 any) {
	doc := map[string]any{}
	if err := json.Unmarshal(swaggerV1, &doc); err != nil {
		panic(err) // a test covers it
	}
	doc["basePath"] = base
	return map[string]any{
		"swaggerVersion": doc["swaggerVersion"], "apiVersion": doc["apiVersion"], "info": doc["info"],
		"apis": []map[string]any{{"path": "/v1", "description": ""}},
	}, doc
}
