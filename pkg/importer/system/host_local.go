package system

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// hostLocal takes over from the plugin host-local.
func hostLocal() System {
	return System{
		Name: "host-local", Aliases: []string{"hostlocal"}, Title: "the CNI plugin host-local", Dirs: true,
		About: `It reads copies of the directories /var/lib/cni/networks/NETWORK of the nodes,
one for each --dir NODE=PATH: a file for each address, with the container that
has it. The directories do not say which pools there are: create those first,
cordoned. A container's pod is the one that reports the address. An address
that no running pod reports is reserved, as is one that the directories of two
nodes have.`,
		Example: `  scp node-1:/var/lib/cni/networks/lan/* lan-node-1/
  bcsnetctl import host-local --dir node-1=lan-node-1 --dir node-2=lan-node-2`,
		Read: readHostLocal,
	}
}

// maxHostLocal bounds the bytes that are read of a file of host-local: a container's ID and an interface.
const maxHostLocal = 4096

func readHostLocal(_ context.Context, from Source) (importer.Rows, error) {
	r := rows{importer.Rows{System: "host-local"}}
	for _, node := range slices.Sorted(maps.Keys(from.Dirs)) {
		files, err := os.ReadDir(from.Dirs[node])
		if err != nil {
			return r.Rows, err
		}
		for _, f := range files {
			if strings.HasPrefix(f.Name(), "last_reserved_ip.") || f.Name() == "lock" || !f.Type().IsRegular() {
				continue
			}
			if err := r.hostLocal(node, filepath.Join(from.Dirs[node], f.Name())); err != nil {
				return r.Rows, err
			}
		}
	}
	return r.Rows, nil
}

// hostLocal adds the address of a file. Its first line is the container, its second one the interface.
func (r *rows) hostLocal(node, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxHostLocal+1))
	if err != nil {
		return err
	}
	name := fmt.Sprintf("file %s of node %s", filepath.Base(path), node)
	addr, err := ipaddr.ParseAddr(filepath.Base(path))
	switch {
	case err != nil:
		r.left(name, "its name is not an address")
		return nil
	case len(content) > maxHostLocal:
		r.conflict(name, "it is larger than %d bytes", maxHostLocal)
		return nil
	}
	lines := strings.Fields(string(content))
	row := importer.Address{Addr: addr, Object: name, State: importer.Held}
	switch len(lines) {
	case 0:
		row.State, row.Reason = importer.Unclear, "the file is empty"
	case 1:
		row.Holder = lease.Holder{ContainerID: lines[0]}
	default:
		row.Holder = lease.Holder{ContainerID: lines[0], IfName: lines[1]}
	}
	r.Addresses = append(r.Addresses, row)
	return nil
}
