package ipam

import (
	"context"
	"fmt"
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
	client   *client.Client
	state    runstate.State
	netns    string
	began    time.Time
	// line is what calls.log says of the call.
	line runstate.Call
}

// begin reads what a call is configured by. The call can be ended, and a DEL done, also when it returns an error.
func (p *Plugin) begin(command string, args *skel.CmdArgs) (*call, error) {
	c := &call{plugin: p, began: p.Now(), netns: args.Netns}
	c.line = runstate.Call{
		At: c.began, Command: command, RequestID: p.NewID(), ContainerID: args.ContainerID, IfName: args.IfName,
	}
	conf, err := netconf.Parse(args.StdinData, args.Args)
	c.conf = conf
	c.line.CNINetwork, c.line.Pod = conf.Name, conf.Pod.String()
	node, nodeErr := c.node()
	c.settings = netconf.Merge(conf, node)
	c.client = &client.Client{Access: c.access, Now: p.Now}
	if len(conf.Unknown) > 0 {
		c.note("ipam has fields that this release does not know: %v", conf.Unknown)
	}
	switch {
	case err != nil:
		return c, configError("the network configuration", err)
	case nodeErr != nil:
		return c, nodeErr
	}
	if c.state, err = c.run().Read(); err != nil {
		c.note("%v", err)
	}
	c.client.Preferred = c.state.Replica
	return c, nil
}

func (c *call) configDir() string {
	if c.conf.ConfigDir != "" {
		return c.conf.ConfigDir
	}
	return c.plugin.ConfigDir
}

// node reads config.json. A node without one is configured by the network configuration alone.
func (c *call) node() (n netconf.Node, err error) {
	text, err := client.NodeFile(c.configDir())
	if err != nil {
		return n, ioError("config.json cannot be read", err)
	}
	if text == nil {
		return n, nil
	}
	if n, err = netconf.ParseNode(text); err != nil {
		return n, configError("config.json in "+c.configDir(), err)
	}
	return n, nil
}

// access reads how the replicas are reached, as the files are now.
func (c *call) access() (client.Access, error) {
	node, err := c.node()
	if err != nil {
		return client.Access{}, err
	}
	a, err := client.Credentials(c.configDir())
	if err != nil {
		return a, ioError("ca.crt or token cannot be read", err)
	}
	s := netconf.Merge(c.conf, node)
	a.Replicas, a.ServerName = s.Replicas, s.ServerName
	if err := a.Check(); err != nil {
		return a, configError(c.configDir(), err)
	}
	return a, nil
}

func (c *call) run() runstate.Dir          { return runstate.Dir(c.settings.RunDir) }
func (c *call) attachments() attach.Dir    { return attach.Dir(c.settings.RunDir + "/attach") }
func (c *call) records() undelivered.Store { return undelivered.In(c.settings.DataDir) }

// startedAt returns when the call began, in the form of the allocator.
func (c *call) startedAt() string { return c.began.Format(time.RFC3339Nano) }

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
	if err := runstate.Dir(c.settings.LogDir).Log(line); err != nil {
		fmt.Fprintf(c.plugin.Stderr, "bcsnet-ipam: %v\n", err)
	}
}

// keepState writes down that a replica answered, and whether pools are full.
func (c *call) keepState(err error) {
	c.state.AnsweredAt, c.state.Replica = c.plugin.Now(), c.client.Replica
	if c.line.Command == "ADD" {
		switch full := fullOf(err); {
		case full != "":
			c.state.PoolsFull = &runstate.Full{At: c.plugin.Now(), Message: full}
		case err == nil:
			c.state.PoolsFull = nil
		}
	}
	if err := c.run().Write(c.state); err != nil {
		c.note("%v", err)
	}
}
