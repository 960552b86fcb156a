package claim

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// maxParsed bounds how many claims are remembered as they were read. When there are more all are read anew.
const maxParsed = 16_384

// parsed remembers claims as they were read: pods come by the hundred for one claim, whose addresses may be a thousand.
// The zero value is ready for use.
type parsed struct {
	mu     sync.Mutex
	claims map[types.UID]parsedClaim
}

type parsedClaim struct {
	version string
	claim   Claim
}

// of does what FromObject does, once for each version of an object that the API server has given.
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
