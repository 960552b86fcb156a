package claim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// maxParsed bounds the number of cached parsed claims. Beyond it, all are parsed again.
const maxParsed = 16_384

// parsed caches parsed claims, because hundreds of pods may use one claim with a thousand addresses. The zero value is
// ready for use.
type parsed struct {
	mu     sync.Mutex
	claims map[types.UID]parsedClaim
}

type parsedClaim struct {
	version string
	claim   Claim
}

// of returns the result of FromObject, computed once for each version of an object of the API server.
func (p *parsed) of(o *v1.BCSNetIPClaim) (Claim, error) {
	p.mu.Lock()
	known, ok := p.claims[o.UID]
	p.mu.Unlock()
	if ok && known.version == o.ResourceVersion {
		return known.claim, nil
	}
	c, err := FromObject(o)
	if err != nil || o.UID == "" || o.ResourceVersion == "" {
		return c, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.claims == nil || len(p.claims) >= maxParsed {
		p.claims = map[types.UID]parsedClaim{}
	}
	p.claims[o.UID] = parsedClaim{o.ResourceVersion, c}
	return c, nil
}
