package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/events"
)

const drainHost = "bcsnetctl release-host HOST frees the addresses of a machine that is off, " +
	"bcsnetctl pool remove-host POOL HOST takes it out of a pool"

// guess returns the command for a word, in args, that a group does not know: people look there first for what has
// another name here. It is empty where there is none.
func guess(cmd *cobra.Command, args []string) string {
	if !cmd.HasParent() {
		return nounFirst(cmd, args)
	}
	switch cmd.Name() + " " + args[0] {
	case "host add", "host create":
		return "bcsnetctl pool add-host POOL HOST lets a host draw from a pool"
	case "host drain", "host retire", "host remove", "host delete", "host rm":
		return drainHost
	case "ip why", "lease why", "ip explain", "lease explain":
		return "bcsnetctl explain POD says why a pod has its address, or none"
	case "ip create", "ip add", "lease create", "lease add":
		return "bcsnetctl ip allocate --pool POOL --for NAME takes an address, bcsnetctl pool add-ip POOL ADDRESS " +
			"gives a pool more"
	case "pool inspect", "host inspect":
		return "bcsnetctl inspect " + strings.Join(append([]string{cmd.Name()}, args[1:]...), " ")
	case "pool wait":
		return "bcsnetctl wait POOL --for=ready"
	case "claim wait":
		return "bcsnetctl wait NAMESPACE/CLAIM --for=ready"
	case "pool apply":
		return "kubectl apply --server-side -f FILE changes pools, bcsnetctl pool diff -f FILE shows what that would do"
	}
	return ""
}

// guessFlag returns what to do in place of a flag that a command does not know; empty where there is nothing to say.
func guessFlag(cmd *cobra.Command, flag string) string {
	switch {
	case flag == "yes" || flag == "y":
		return cmd.CommandPath() + " asks for no confirmation: leave the flag out"
	case cmd.Name() == "allocate" && (flag == "owner" || flag == "name"):
		return "--for NAME says who holds the address"
	case cmd.Name() == "events" && flag == "since":
		return events.HistoryHint
	}
	return ""
}

// nounFirst returns the command for words in kubectl's order, verb and noun. For one of kubectl's verbs alone it
// describes what there is instead.
func nounFirst(root *cobra.Command, args []string) string {
	if len(args) > 1 {
		noun, name, named := strings.Cut(args[1], "/")
		rest := slices.Clone(args[2:])
		if named {
			rest = append([]string{name}, rest...)
		}
		verb := args[0]
		if verb == "get" && len(rest) > 0 {
			verb = "describe" // of one object
		}
		found, left, err := root.Find([]string{resourceNoun(noun), verb})
		if err == nil && len(left) == 0 && found.HasParent() && found.Parent() != root {
			return strings.Join(append([]string{found.CommandPath()}, rest...), " ")
		}
	}
	switch args[0] {
	case "get", "list", "ls":
		return "name the kind of object first, as in bcsnetctl pool list, bcsnetctl ip list, bcsnetctl claim list"
	case "network", "networks", "net":
		return "a network is the pools that name it: bcsnetctl pool tree shows them, bcsnetctl inspect network NAME " +
			"their addresses"
	case "why":
		return "bcsnetctl explain POD says why a pod has its address, or none"
	case "who":
		return "bcsnetctl ip describe ADDRESS says who has an address"
	case "drain", "retire":
		return drainHost
	}
	return ""
}

// resourceNoun returns the group of commands for a kind as kubectl calls it.
func resourceNoun(kind string) string {
	switch strings.ToLower(kind) {
	case "bnp", "bcsnetpool", "bcsnetpools":
		return "pool"
	case "bnip", "bcsnetip", "bcsnetips":
		return "ip"
	case "bnc", "sip", "bcsnetipclaim", "bcsnetipclaims":
		return "claim"
	case "node", "nodes":
		return "host"
	}
	return kind
}

// bareDryRun gives --dry-run without a value the value client, as kubectl once did. The value may still be a word of
// its own. Where a shell asks what may follow, the value is not written yet.
func bareDryRun(args []string) []string {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return args
	}
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		if arg != "--dry-run" {
			continue
		}
		var d app.DryRun
		if i+1 == len(out) || d.Set(out[i+1]) != nil {
			out[i] = "--dry-run=" + string(app.DryRunClient)
		}
	}
	return out
}
