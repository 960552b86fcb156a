package ipam

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/cni/undelivered"
)

// call is one call of the plugin.
type call struct {
	plugin   *Plugin
	conf     netconf.Conflist
	settings netconf.Settings
	// files are those of the node's directory until they are used.
	files  *client.Files
	client *client.Client
	state  runstate.State
	netns  string
	// began is when the call did, by the node's clock; up is the time since boot then, told what the allocator hears.
	began, told time.Time
	up          time.Duration
	// line is what calls.log says of the call.
	line runstate.Call
}

// begin reads what a call is configured by. The call can be ended, and a DEL done, also when it returns an error.
func (p *Plugin) begin(command string, args *skel.CmdArgs) (*call, error) {
	c := &call{plugin: p, began: p.Now(), netns: args.Netns}
	up, upErr := p.Up()
	c.told, c.up = c.began, up
	c.line = runstate.Call{
		At: c.began, Command: command, RequestID: p.NewID(), ContainerID: args.ContainerID, IfName: args.IfName,
	}
	conf, err := netconf.Parse(args.StdinData, args.Args)
	c.conf = conf
	c.conf.CNIVersion = cmp.Or(conf.CNIVersion, "0.1.0") // as CNI takes one without
	c.line.CNINetwork, c.line.Pod = conf.Name, conf.Pod.String()
	var nodeErr error
	c.files, c.settings, nodeErr = c.read()
	c.client = &client.Client{Access: c.access, Now: p.Now}
	c.noteUnfollowed()
	switch {
	case err != nil:
		return c, configError("the network configuration", err)
	case nodeErr != nil:
		return c, nodeErr
	}
	if c.state, err = c.run().Read(); err != nil {
		c.note("%v", err)
	} else if upErr == nil {
		c.steady()
	}
	c.client.Preferred = c.state.Replica
	if !c.settings.ByConflist {
		c.client.Receipt = c.state.Receipt
	}
	return c, nil
}

// noteUnfollowed writes down which fields of the network configuration say nothing here.
func (c *call) noteUnfollowed() {
	if len(c.conf.Former) > 0 {
		c.note("config.json in %s says what these fields do not say any more: %s", c.plugin.ConfigDir,
			strings.Join(c.conf.Former, ", "))
	}
	if len(c.conf.Replicas) > 0 && !c.settings.ByConflist {
		c.note("replicas of config.json in %s go before ipam.netserviceEndpoint", c.plugin.ConfigDir)
	}
	for _, unknown := range c.conf.Unknown {
		c.note("%v", unknown)
	}
}

// read reads the node's directory. A node without config.json is configured by the network configuration alone.
func (c *call) read() (*client.Files, netconf.Settings, error) {
	var n netconf.Node
	files, err := client.ReadFiles(c.plugin.ConfigDir)
	if err != nil {
		return nil, netconf.Merge(c.conf, n), ioError("the node's configuration cannot be read", err)
	}
	if files.Config != nil {
		if n, err = netconf.ParseNode(files.Config); err != nil {
			err = configError("config.json in "+c.plugin.ConfigDir, err)
		}
	}
	return &files, netconf.Merge(c.conf, n), err
}

// access returns how the replicas are reached: at first by what the call began with, then as the files are now. Whoever
// may write a network configuration does not choose who is shown the node's token: replicas that it names get none.
func (c *call) access() (client.Access, error) {
	files, s := c.files, c.settings
	c.files = nil
	if files == nil {
		var err error
		if files, s, err = c.read(); err != nil {
			return client.Access{}, err
		}
	}
	if s.ByConflist {
		files = &client.Files{}
	}
	a := files.Access(s.Replicas, s.ServerName)
	if err := a.Check(); err != nil {
		return a, configError(c.plugin.ConfigDir, err)
	}
	return a, nil
}

func (c *call) run() runstate.Dir          { return runstate.Dir(c.settings.RunDir) }
func (c *call) attachments() attach.Dir    { return attach.In(c.settings.RunDir) }
func (c *call) records() undelivered.Store { return undelivered.In(c.settings.DataDir) }

// steady makes the call begin by the clock that the node's earlier calls went by: the clock may have been set back.
func (c *call) steady() {
	told, moved := c.state.Steady(c.began, c.up)
	c.told = told
	if !moved {
		return
	}
	if err := c.run().Update(func(s *runstate.State) { _, _ = s.Steady(c.began, c.up) }); err != nil {
		c.note("%v", err)
	}
}

// startedAt returns when the call began, in the form of the allocator.
func (c *call) startedAt() string { return c.told.Format(time.RFC3339Nano) }

// note records what went wrong without failing the call.
func (c *call) note(format string, args ...any) {
	c.line.Notes = append(c.line.Notes, fmt.Sprintf(format, args...))
}

// end records what a call came to, delivers what earlier ones could not, and returns the error as CNI has it.
func (c *call) end(err error) error {
	out := asCNI(err)
	if c.line.Outcome == "" {
		c.line.Outcome = outcomeOf(err)
	}
	c.line.Reason = reasonOf(err)
	if out != nil {
		c.line.Error = out.Error()
	}
	c.line.Tries, c.line.Replica = c.client.Tries, c.client.Replica
	c.line.Milliseconds = float64(c.plugin.Now().Sub(c.began).Microseconds()) / 1000
	if c.client.Replica != "" {
		c.keepState(err)
		if c.line.Command != "STATUS" && c.line.Command != "CHECK" {
			c.deliver(context.Background())
		}
	}
	c.log(c.line)
	for _, note := range c.line.Notes {
		fmt.Fprintf(c.plugin.Stderr, "bcsnet-ipam: %s of %s: %s\n", c.line.Command, c.line.ContainerID, note)
	}
	if out == nil {
		return nil // not a nil *types.Error in an error
	}
	return out
}

// log appends a line to calls.log. Without it the call is the same.
func (c *call) log(line runstate.Call) {
	if err := c.run().Log(line); err != nil {
		fmt.Fprintf(c.plugin.Stderr, "bcsnet-ipam: %v\n", err)
	}
}

// keepState writes down that a replica answered, and whether pools are full.
func (c *call) keepState(err error) {
	failed := c.run().Update(func(s *runstate.State) {
		s.AnsweredAt, s.Replica = c.plugin.Now(), c.client.Replica
		if !c.settings.ByConflist && c.client.Receipt != c.state.Receipt { // another call may have written a newer one
			s.Receipt = c.client.Receipt
		}
		switch full := fullOf(err); {
		case c.line.Command != "ADD":
		case full != "":
			s.PoolsFull = &runstate.Full{At: c.plugin.Now(), Message: full}
		case err == nil:
			s.PoolsFull = nil
		}
	})
	if failed != nil {
		c.note("%v", failed)
	}
}
