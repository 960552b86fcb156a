package gc

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/controller/node"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
	"github.com/bcsnet/bcsnet/pkg/store"
)

const (
	// formersKey has the former nodes of addresses in the ConfigMap: one a line, as "ADDRESS NODE TIME". It is in
	// BinaryData, because earlier releases replace all of Data.
	formersKey = "former-nodes"
	// maxFormers bounds their text in bytes: some 7,000 former nodes with usual names. With the waits it stays below
	// the API server's limit of 1 MiB. The earliest ones that do not fit are unknown to the next process.
	maxFormers = 512 << 10
	// keepFormer bounds how long a former node is remembered if no lease needs it. The process may see a lease from
	// before the move late.
	keepFormer = time.Hour
)

// formers returns the former nodes that leases need: those of hosts with a lease from before the move, and those of the
// last hour.
func (c *Collector) formers() []node.Former {
	if !c.Nodes.Moved() { // then no lease needs to be looked at
		return nil
	}
	earliest, now := map[netip.Addr]time.Time{}, c.Leases.Now()
	for l := range c.attachments() {
		if at, ok := earliest[l.Host]; !ok || l.Updated.Before(at) {
			earliest[l.Host] = l.Updated
		}
	}
	return c.Nodes.Formers(func(f node.Former) bool {
		at, ok := earliest[f.Host]
		return ok && f.Concerns(at) || now.Sub(f.Until) < keepFormer
	})
}

// writeFormers returns the text of the former nodes that fit; the latest must be first.
func writeFormers(all []node.Former) (text []byte) {
	for _, f := range all {
		line := fmt.Sprintf("%s %s %s\n", f.Host, f.Name, store.FormatTime(f.Until))
		if len(text)+len(line) > maxFormers {
			break
		}
		text = append(text, line...)
	}
	return text
}

// readFormers returns the former nodes of a text. It leaves out lines that somebody else wrote.
func readFormers(text []byte) (all []node.Former) {
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		host, err := ipaddr.ParseAddr(words[0])
		until, ok := store.ParseTime(words[2])
		if err == nil && ok && !until.IsZero() {
			all = append(all, node.Former{Host: host, Name: words[1], Until: until})
		}
	}
	return all
}
