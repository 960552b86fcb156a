//go:build !faults

package httpapi

import (
	"context"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// alsoRelease does nothing here, and the compiler removes it. In a build with the tag faults, it breaks a DEL on
// purpose.
func (*Service) alsoRelease(context.Context, wire.ReleaseRequest) {}
