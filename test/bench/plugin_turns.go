package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
)

// pluginTimes are the times of calls by turn, and of ADDs as calls.log has them.
type pluginTimes struct {
	rawAdd, rawDel, add, del, secureAdd, secureDel, status, version []time.Duration
	inside                                                          []time.Duration
}

// turns makes all calls in turn, in an order that changes, so that whatever else the machine does meets all alike. The
// first turns do not count.
func (p *plugin) turns(ctx context.Context, n int) (t pluginTimes, err error) {
	const warm = 5
	each := []func(context.Context, int) error{
		p.pair(p.raw(http.MethodPost), p.raw(http.MethodDelete), &t.rawAdd, &t.rawDel),
		p.pair(p.process("ADD", p.plain), p.process("DEL", p.plain), &t.add, &t.del),
		p.pair(p.process("ADD", p.secure), p.process("DEL", p.secure), &t.secureAdd, &t.secureDel),
	}
	for i := range warm + n {
		for j := range each {
			if err := each[(i+j)%len(each)](ctx, len(each)*i+j); err != nil {
				return t, err
			}
		}
		if err := p.timed(ctx, p.process("STATUS", p.plain), i, &t.status); err != nil {
			return t, err
		}
		if err := p.timed(ctx, p.process("VERSION", p.plain), i, &t.version); err != nil {
			return t, err
		}
		if i == warm-1 {
			t = pluginTimes{}
		}
	}
	return t, nil
}

// pair returns a function that takes an address and gives it back, and appends the times.
func (p *plugin) pair(add, del operation, adds, dels *[]time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, n int) error {
		if err := p.timed(ctx, add, n, adds); err != nil {
			return err
		}
		return p.timed(ctx, del, n, dels)
	}
}

func (p *plugin) timed(ctx context.Context, do operation, n int, to *[]time.Duration) error {
	began := time.Now()
	err := do(ctx, 0, n)
	*to = append(*to, time.Since(began))
	return err
}

// inside returns the times of ADDs without the start of the process, as calls.log has them.
func (p *plugin) inside() (all []time.Duration, err error) {
	text, err := os.ReadFile(filepath.Join(p.run, "plain", "calls.log"))
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		var c runstate.Call
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, err
		}
		if c.Command == "ADD" {
			all = append(all, time.Duration(c.Milliseconds*float64(time.Millisecond)))
		}
	}
	return all, nil
}
