package ipam

import (
	"errors"
	"time"
)

// ReturnTime bounds the time without new addresses after the store was put back to an older state. No replica is sure
// to know every holder. One whose watch had not delivered the last write would give a container that asks again a
// second address, and the first one to somebody else. Meanwhile the other replicas notice, too, and write what they
// know.
const ReturnTime = 15 * time.Second

// OrphanTime bounds that time if no replica knew the store as it was. The containers of pods that the API server knows
// nothing of have addresses that nobody can tell; their kubelets end them in that time. It is what package gone grants
// the containers of a pod that is gone.
const OrphanTime = 45 * time.Second

// ErrReset says that the index was made anew while somebody waited for it to reach a version.
var ErrReset = errors.New("the store was put back to an older state")
