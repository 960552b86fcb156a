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
	// files are the node's files as read at the beginning, until they are used.
	files  *client.Files
	client *client.Client
	state  runstate.State
	netns  string
	// began is the start of the call by the node's clock, up the time since boot at that moment, and told the start as
	// sent to the allocator.
	began, told time.Time
	up          time.Duration
	// line is the call's line in calls.log.
	line runstate.Call
}

// begin reads the configuration of a call. Even if it returns an error, the call can be ended and a DEL carried out.
func (p *Plugin) begin(command string, args *skel.CmdArgs) (*call, error) {
	c := &call{plugin: p, began: p.Now(), netns: args.Netns}
	up, upErr := p.Up()
	c.told, c.up = c.began, up
	c.line = runstate.Call{
		At: c.began, Command: command, RequestID: p.NewID(), ContainerID: args.ContainerID, IfName: args.IfName,
	}
	conf, err := netconf.Parse(args.StdinData, args.Args)
	c.conf = conf
	c.conf.CNIVersion = cmp.Or(conf.CNIVersion, "0.1.0") // the version that CNI assumes
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

// noteUnfollowed logs the fields of the network configuration that have no effect.
func (c *call) noteUnfollowed() {
	if len(c.conf.Former) > 0 {
		c.note("config.json in %s sets these fields now, and the configuration no longer does: %s", c.plugin.ConfigDir,
			strings.Join(c.conf.Former, ", "))
	}
	if len(c.conf.Replicas) > 0 && !c.settings.ByConflist {
		c.note("replicas of config.json in %s go before ipam.netserviceEndpoint", c.plugin.ConfigDir)
	}
	for _, unknown := range c.conf.Unknown {
		c.note("%v", unknown)
	}
}

// read reads the node's directory. A node without config.json is configured only by the network configuration.
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

// access returns how to reach the replicas: first with the files as read at the beginning of the call, later with the
// current files. Replicas that a network configuration names do not get the node's token, because its author must not
// choose who sees the token.
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
	a, err := files.Access(s.Replicas, s.ServerName)
	if err != nil {
		return a, configError(c.plugin.ConfigDir, err)
	}
	return a, nil
}

func (c *call) run() runstate.Dir          { return runstate.Dir(c.settings.RunDir) }
func (c *call) attachments() attach.Dir    { return attach.In(c.settings.RunDir) }
func (c *call) records() undelivered.Store { return undelivered.In(c.settings.DataDir) }

// steady sets the start of the call by the clock of the node's earlier calls, because the clock may have been set back.
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

// startedAt returns the start of the call in the allocator's format.
func (c *call) startedAt() string { return c.told.Format(time.RFC3339Nano) }

// note logs a problem that does not make the call fail.
func (c *call) note(format string, args ...any) {
	c.line.Notes = append(c.line.Notes, fmt.Sprintf(format, args...))
}

// end logs the outcome of a call, delivers undelivered releases of earlier calls, and returns the error in CNI's form.
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

// log appends a line to calls.log. A failure does not make the call fail.
func (c *call) log(line runstate.Call) {
	if err := c.run().Log(line); err != nil {
		fmt.Fprintf(c.plugin.Stderr, "bcsnet-ipam: %v\n", err)
	}
}

// keepState stores that a replica answered, and whether pools are full. While nothing changes, calls in quick
// succession write nothing.
func (c *call) keepState(err error) {
	change := func(s *runstate.State) {
		now := c.plugin.Now()
		if s.Replica != c.client.Replica || now.Sub(s.AnsweredAt).Abs() >= runstate.Precision {
			s.AnsweredAt, s.Replica = now, c.client.Replica
		}
		if !c.settings.ByConflist && c.client.Receipt != c.state.Receipt { // another call may have written a newer one
			s.Receipt = c.client.Receipt
		}
		switch full := fullOf(err); {
		case c.line.Command != "ADD":
		case full != "":
			s.PoolsFull = &runstate.Full{At: now, Message: full}
		case err == nil:
			s.PoolsFull = nil
		}
	}
	after := c.state
	if change(&after); after == c.state {
		return
	}
	if failed := c.run().Update(change); failed != nil {
		c.note("%v", failed)
	}
}
