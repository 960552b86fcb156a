package ipam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/utils"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
)

const (
	// drainTime bounds one run of drain. Its caller repeats it.
	drainTime = time.Minute
	// maxConfig bounds a network configuration, in octets: it includes the list of a GC.
	maxConfig = 16 << 20
	// noName replaces the missing name of a network.
	noName = "unknown"
)

// Stdin returns the standard input for CNI's library. For a DEL, it differs from the runtime's text: a DEL must succeed
// even if the network configuration has only the plugin's type or was damaged after the ADD.
func Stdin(command string, in *os.File) (*os.File, error) {
	if command != "DEL" {
		return in, nil
	}
	text, err := io.ReadAll(io.LimitReader(in, maxConfig+1))
	if err != nil || len(text) > maxConfig {
		text = nil
	}
	text = forDEL(text)
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = io.Copy(w, bytes.NewReader(text)) // the reader notices an incomplete text
		_ = w.Close()
	}()
	return r, nil
}

// forDEL returns a network configuration that the library accepts for a DEL, with all usable fields of the given one.
func forDEL(text []byte) []byte {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(text, &fields) != nil || fields == nil {
		fields = map[string]json.RawMessage{"type": marshal(netconf.Type)}
	}
	var name, version string
	if json.Unmarshal(fields["name"], &name) != nil || utils.ValidateNetworkName(name) != nil {
		fields["name"] = marshal(noName)
	}
	versions := Versions().SupportedVersions()
	if json.Unmarshal(fields["cniVersion"], &version) != nil || !slices.Contains(versions, version) {
		fields["cniVersion"] = marshal(versions[len(versions)-1])
	}
	return marshal(fields)
}

func marshal(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, and values that were JSON before
	}
	return text
}

// Drain runs the command bcsnet-ipam drain: it delivers the undelivered releases and returns the exit code: 0 if none
// is left, 1 if some are, 2 for wrong arguments.
func (p *Plugin) Drain(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("bcsnet-ipam drain", flag.ContinueOnError)
	flags.SetOutput(p.Stderr)
	dir := flags.String("config-dir", p.ConfigDir, "the directory with config.json, ca.crt and token")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		fmt.Fprintln(p.Stderr, "usage: bcsnet-ipam drain [--config-dir DIR]")
		return 2
	}
	p.ConfigDir = *dir
	d, err := p.Deliver(ctx)
	if err != nil {
		fmt.Fprintln(p.Stderr, err)
	}
	fmt.Fprintln(p.Stdout, d)
	if err != nil || d.Left > 0 {
		return 1
	}
	return 0
}

// Deliveries counts delivered, dropped and remaining releases.
type Deliveries struct{ Delivered, Dropped, Left int }

// String returns the counts in one line.
func (d Deliveries) String() string {
	return fmt.Sprintf("delivered %d, dropped %d, left %d", d.Delivered, d.Dropped, d.Left)
}

// Deliver delivers the undelivered releases for at most a minute. If some are left, its caller calls it again.
func (p *Plugin) Deliver(ctx context.Context) (d Deliveries, err error) {
	ctx, stop := context.WithTimeout(ctx, drainTime)
	defer stop()
	c, err := p.begin("DRAIN", &skel.CmdArgs{StdinData: []byte("{}")})
	if err == nil {
		err = c.settings.Complete()
	}
	if err == nil {
		d.Delivered, d.Dropped, err = c.drain(ctx, undelivered.Max)
	}
	var lenErr error
	d.Left, lenErr = c.records().Len()
	if err = errors.Join(err, lenErr); err != nil {
		return d, asCNI(err)
	}
	return d, nil
}
