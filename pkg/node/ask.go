package node

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

const (
	// askTime bounds one question to all replicas together.
	askTime = 5 * time.Second
	// nobody is the ID of a container that does not exist. Every replica answers a question for its addresses from
	// memory.
	nobody = "bcsnet-node"
)

// asker asks the allocator as the plugins do: with their files and token, at the replicas that they know.
type asker struct {
	configDir string
	now       func() time.Time
	// replica is the URL of the replica that answered last.
	replica string
}

// ask returns nil if a replica answered. A refusal also counts as an answer: the replica accepted the caller. receipt
// is that of the last ADD on this node; empty for none.
func (a *asker) ask(ctx context.Context, receipt string) error {
	ctx, stop := context.WithTimeout(ctx, askTime)
	defer stop()
	c := client.Client{Access: a.access, Preferred: a.replica, Receipt: receipt, Now: a.now}
	err := c.Do(ctx, client.Call{
		Method: http.MethodGet, Path: wire.Prefix + "/container/" + nobody, RequestID: uuid.NewString(), Once: true,
		Accept: func(data json.RawMessage) error { return json.Unmarshal(data, &wire.LeaseList{}) },
	})
	if _, refused := errors.AsType[*client.Refusal](err); refused {
		err = nil
	}
	if err == nil {
		a.replica = c.Replica
	}
	return err
}

func (a *asker) access() (client.Access, error) {
	files, err := client.ReadFiles(a.configDir)
	if err != nil {
		return client.Access{}, err
	}
	now := parseConfig(files.Config)
	return files.Access(now.Replicas, now.ServerName)
}
