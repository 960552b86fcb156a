package cli

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// job is what an operator wants to do, with what people type for it before they read the help, and the commands that
// do it. Each guess runs one of the commands, or is answered with one.
type job struct {
	what    string
	guesses []string
	by      []string
	// takes: the job is to take addresses from their holders, or out of what is handed out. No guess at another one
	// runs a command that does.
	takes bool
}

func jobs() []job {
	return []job{
		{
			what:    "list pools",
			guesses: []string{"pool list", "pools list", "get pools", "list pools", "pool ls", "pool get"},
			by:      []string{"pool list"},
		},
		{
			what: "see a pool",
			guesses: []string{
				"pool describe blue", "pool show blue", "describe pool blue", "pool status blue", "pool get blue",
				"get pool blue",
			},
			by: []string{"pool describe"},
		},
		{
			what:    "make a pool",
			guesses: []string{"pool create blue --cidr 10.0.0.0/24 --range 10.0.0.20-10.0.0.29", "create pool blue"},
			by:      []string{"pool create"},
		},
		{
			what: "add a host",
			guesses: []string{
				"pool add-host blue 10.0.0.12", "host add 10.0.0.12", "add-host blue 10.0.0.12",
				"node add 10.0.0.12",
			},
			by: []string{"pool add-host"},
		},
		{
			what: "add addresses",
			guesses: []string{
				"pool add-ip blue 10.0.0.30", "pool add-range blue 10.0.0.30", "pool grow blue", "pool resize blue",
				"ip add 10.0.0.30",
			},
			by: []string{"pool add-ip"},
		},
		{
			what: "who has this address",
			guesses: []string{
				"ip describe 10.0.0.1", "who 10.0.0.1", "ip show 10.0.0.1", "ip who 10.0.0.1", "whois 10.0.0.1",
				"ip get 10.0.0.1", "trace 10.0.0.1",
			},
			by: []string{"ip describe", "trace"},
		},
		{
			what:    "what has this pod",
			guesses: []string{"find web-0", "ip find web-0", "pod web-0", "search web-0", "trace web-0"},
			by:      []string{"ip find", "explain", "trace"},
		},
		{
			what:    "why has this pod none",
			guesses: []string{"explain web-0", "why web-0", "ip why web-0", "explain pod web-0"},
			by:      []string{"explain"},
		},
		{
			what: "what has this host",
			guesses: []string{
				"host describe 10.0.0.11", "node describe 10.0.0.11", "host show 10.0.0.11", "node list",
				"host inspect 10.0.0.11", "get nodes",
			},
			by: []string{"host describe", "host list", "inspect host"},
		},
		{
			what: "release an address",
			guesses: []string{
				"ip release 10.0.0.1", "release 10.0.0.1", "release ip 10.0.0.1", "lease delete 10.0.0.1",
			},
			by:    []string{"ip release", "lease release"},
			takes: true,
		},
		{
			what: "retire a host",
			guesses: []string{
				"release-host 10.0.0.11", "host drain 10.0.0.11", "drain 10.0.0.11", "host delete 10.0.0.11",
				"release node-1",
			},
			by:    []string{"release-host"},
			takes: true,
		},
		{
			what:    "set an address aside",
			guesses: []string{"ip reserve 10.0.0.1", "reserve 10.0.0.1", "ip block 10.0.0.1", "ip cordon 10.0.0.1"},
			by:      []string{"ip reserve"},
			takes:   true,
		},
		{
			what: "what is free",
			guesses: []string{
				"ip free 10.20.0.0/24", "ip free", "free blue", "pool free blue", "ip list --status available",
				"next", "ip next blue",
			},
			by: []string{"ip free", "ip list"},
		},
		{
			what: "ten in a row",
			guesses: []string{
				"ip free blue --run 10", "inspect pool blue --run 10", "next blue", "ip next",
				"ip reserve --pool blue --count 10 --contiguous",
			},
			by: []string{"ip free", "ip reserve"},
		},
		{
			what:    "how full",
			guesses: []string{"usage", "top", "pool usage blue", "pool top blue", "status", "ip usage"},
			by:      []string{"usage", "top", "top pool", "pool usage", "pool list"},
		},
		{
			what:    "leaks",
			guesses: []string{"doctor", "leaks", "gc", "doctor --only leaks", "health"},
			by:      []string{"doctor"},
		},
		{
			what:    "a pool for a namespace",
			guesses: []string{"pool bind blue -n shop", "bind blue -n shop", "bind blue"},
			by:      []string{"pool bind"},
		},
		{
			what:    "back up",
			guesses: []string{"backup", "pool backup", "backup FILE", "save", "dump"},
			by:      []string{"backup"},
		},
		{
			what: "restore",
			guesses: []string{
				"restore pools.yaml", "pool restore -f pools.yaml", "pool import -f pools.yaml", "load pools.yaml",
			},
			by: []string{"restore"},
		},
		{
			what:    "export to a spreadsheet",
			guesses: []string{"ip list -o csv", "export -o csv", "csv", "ip export", "lease export", "usage -o csv"},
			by:      []string{"export", "ip list", "lease list", "usage"},
		},
		{
			what: "set a VLAN",
			guesses: []string{
				"pool set blue --vlan 7", "set blue --vlan 7", "pool edit blue", "pool update blue --vlan 7",
				"vlan blue 7", "pool vlan blue 7",
			},
			by: []string{"pool set", "pool edit"},
		},
		{
			what:    "set a quota",
			guesses: []string{"quota", "pool quota blue shop=20", "pool set blue --quota shop=20", "quota shop 20"},
			by:      []string{"pool set"},
		},
		{
			what:    "stop a namespace",
			guesses: []string{"stop shop", "deny shop", "pool set blue --quota shop=0", "block shop"},
			by:      []string{"pool set"},
		},
		{
			what:    "stop a pool",
			guesses: []string{"pool cordon blue", "cordon blue", "pool stop blue", "pool drain blue"},
			by:      []string{"pool cordon"},
		},
		{
			what:    "keep pods off a host",
			guesses: []string{"host cordon 10.0.0.11", "node cordon 10.0.0.11"},
			by:      []string{"pool remove-host"},
		},
		{
			what: "rename, merge, split",
			guesses: []string{
				"rename blue green", "pool rename blue green", "merge blue green", "pool merge blue green",
				"split blue green 10.0.0.20", "pool move blue",
			},
			by: []string{"pool rename", "pool merge", "pool split"},
		},
		{
			what:    "who had it yesterday",
			guesses: []string{"history 10.0.0.1", "ip history 10.0.0.1", "lease history 10.0.0.1"},
			by:      []string{"ip history", "lease history"},
		},
		{
			what: "compare and apply a file",
			guesses: []string{
				"diff -f pools.yaml", "pool diff -f pools.yaml", "apply -f pools.yaml", "pool apply -f pools.yaml",
			},
			by: []string{"pool diff"},
		},
	}
}

// TestFirstGuess: what people type first runs what they want, or is answered with it, and takes nothing that they only
// wanted to see.
func TestFirstGuess(t *testing.T) {
	takes := []string{
		"ip release", "lease release", "release-host", "host release", "claim release", "ip reserve", "pool delete",
		"pool remove-ip", "pool remove-host", "claim delete",
	}
	for _, j := range jobs() {
		for _, line := range j.guesses {
			ran, err := guessed(t, strings.Fields(line))
			if ran != "" {
				if !slices.Contains(j.by, ran) {
					t.Errorf("%s: %q runs %s", j.what, line, ran)
				}
				if slices.Contains(takes, ran) && !j.takes && !strings.HasPrefix(line, ran) {
					t.Errorf("%s: %q takes something", j.what, line)
				}
				continue
			}
			var f *app.Failure
			if !errors.As(err, &f) || !slices.ContainsFunc(j.by, func(by string) bool {
				return strings.Contains(f.Hint, app.ProgramName+" "+by)
			}) {
				t.Errorf("%s: %q is answered with %v, %+v", j.what, line, err, f)
			}
		}
	}
}

// TestAnswers: what answers to guesses name there is, and no answer is for a word that is a command.
func TestAnswers(t *testing.T) {
	root := Reference()
	for line := range strings.Lines(guesses) {
		parts := strings.SplitN(strings.TrimSpace(line), " | ", 3)
		if len(parts) != 3 {
			if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
				t.Errorf("%q is no answer", line)
			}
			continue
		}
		in := root
		if parts[0] != app.ProgramName {
			in, _, _ = root.Find(parts[:1])
		}
		for word := range strings.FieldsSeq(parts[1]) {
			if cmd, _, err := in.Find([]string{word}); err == nil && cmd != in {
				t.Errorf("%s %s is a command", parts[0], word)
			}
		}
		for _, words := range regexp.MustCompile(`bcsnetctl ([a-z-]+)( [a-z-]+)?`).FindAllStringSubmatch(parts[2], -1) {
			cmd, _, err := root.Find([]string{words[1], strings.TrimSpace(words[2])})
			if err != nil || cmd == root || cmd.HasSubCommands() && strings.TrimSpace(words[2]) != "" && !takesArguments(cmd) &&
				cmd.Name() != "doctor" && cmd.Name() != "top" {
				t.Errorf("%q: there is no %q", line, words[0])
			}
		}
	}
}

// guessed returns the command that a line runs, with its path but for the program's name, or else the answer.
func guessed(t *testing.T, args []string) (ran string, err error) {
	t.Helper()
	root := newRoot(app.New(app.ProgramName, "", genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}))
	var record func(*cobra.Command)
	record = func(cmd *cobra.Command) {
		group := cmd.RunE
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if cmd.HasSubCommands() && len(args) > 0 && !takesArguments(cmd) {
				return group(cmd, args)
			}
			_, ran, _ = strings.Cut(cmd.CommandPath(), " ")
			return nil
		}
		for _, sub := range cmd.Commands() {
			record(sub)
		}
	}
	record(root)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return ran, err
}
