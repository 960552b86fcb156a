package cli

import (
	_ "embed"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/cmd/events"
	"github.com/bcsnet/bcsnet/pkg/ipam/ipaddr"
)

// guess returns the command for words that a group does not know: people look there first for what has another name
// here. It is empty if there is none. A guess is answered and never run: what was meant to be looked at is not changed.
func guess(cmd *cobra.Command, args []string) string {
	word, root := args[0], !cmd.HasParent()
	name := cmd.Name()
	if root {
		name = app.ProgramName
	}
	if root {
		if text := nounFirst(cmd, args); text != "" {
			return text
		}
	}
	if text, known := answers(name)[word]; known {
		return filled(text, args[1:])
	}
	switch {
	case root && word == "release":
		return release(args[1:])
	case root && slices.Contains([]string{"get", "list", "ls"}, word):
		return "name the kind of object first, as in bcsnetctl pool list, bcsnetctl ip list, bcsnetctl claim list"
	case root:
		return elsewhere(cmd, args)
	case slices.Contains(strings.Fields("show status info view inspect what"), word):
		if one, _, err := cmd.Find([]string{"describe"}); err == nil && one != cmd {
			return strings.Join(append([]string{one.CommandPath()}, args[1:]...), " ")
		}
	}
	return ""
}

//go:embed guesses.txt
var guesses string

// answers returns the answers to guesses behind a command, by the word.
func answers(command string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(guesses) {
		if parts := strings.SplitN(strings.TrimSpace(line), " | ", 3); len(parts) == 3 && parts[0] == command {
			for word := range strings.FieldsSeq(parts[1]) {
				all[word] = parts[2]
			}
		}
	}
	return all
}

// filled returns a text with what was typed in place of its name in braces; the name itself if nothing was. A noun in
// front of it says no more than the text does.
func filled(text string, args []string) string {
	nouns := []string{"pool", "ip", "address", "claim", "host", "node", "namespace", "ns", "pod", "lease"}
	given := slices.IndexFunc(args, func(arg string) bool {
		return !strings.HasPrefix(arg, "-") && !slices.Contains(nouns, arg)
	})
	return regexp.MustCompile(`\{([^{}]+)\}`).ReplaceAllStringFunc(text, func(name string) string {
		if given < 0 {
			return name[1 : len(name)-1]
		}
		return args[given]
	})
}

// release returns the command that releases what was named: an address, a pod, or else a host.
func release(args []string) string {
	const (
		addresses = "bcsnetctl ip release {ADDRESS} takes an address from its holder"
		host      = "bcsnetctl release-host {HOST} frees all addresses of a machine that is off"
	)
	if len(args) == 0 {
		return filled(addresses+", "+host, nil)
	}
	_, notAddress := ipaddr.ParseRange(args[0])
	_, isHost := netip.ParseAddr(args[0])
	switch {
	case isHost == nil:
		return filled(addresses+"; if it is that of a machine: "+host, args)
	case notAddress == nil:
		return filled(addresses, args)
	case strings.Contains(args[0], "/"):
		return filled("bcsnetctl ip release --endpoint {POD}", args)
	default:
		return filled(host+", bcsnetctl ip release --endpoint {NAME} those of a pod or an owner", args)
	}
}

// guessFlag returns what to do in place of a flag that a command does not know; empty where there is nothing to say.
func guessFlag(cmd *cobra.Command, flag string) string {
	switch {
	case flag == "yes" || flag == "y":
		return cmd.CommandPath() + " asks for no confirmation: leave the flag out"
	case cmd.Name() == "allocate" && (flag == "owner" || flag == "name"):
		return "--for NAME says who holds the address"
	case cmd.HasParent() && cmd.Parent().Name() == "inspect" && (flag == "run" || flag == "count"):
		return "bcsnetctl ip free POOL --run N lists free addresses in a row"
	case cmd.Name() == "events" && flag == "since":
		return events.HistoryHint
	}
	return ""
}

// nounFirst returns the command for words in kubectl's order, verb and noun.
func nounFirst(root *cobra.Command, args []string) string {
	if len(args) > 1 {
		noun, name, named := strings.Cut(args[1], "/")
		rest := slices.Clone(args[2:])
		if named {
			rest = append([]string{name}, rest...)
		}
		verb := args[0]
		if slices.Contains(strings.Fields("get show info view"), verb) {
			if verb = "list"; len(rest) > 0 {
				verb = "describe" // of one object
			}
		}
		found, left, err := root.Find([]string{resourceNoun(noun), verb})
		if err == nil && len(left) == 0 && found.HasParent() && found.Parent() != root {
			return strings.Join(append([]string{found.CommandPath()}, rest...), " ")
		}
	}
	return ""
}

// elsewhere returns the command of a group for a word that is typed without the group, if but one group has it; lease
// has what ip has.
func elsewhere(root *cobra.Command, args []string) string {
	var found []string
	for _, group := range []string{"pool", "ip", "claim", "host"} {
		if cmd, left, err := root.Find([]string{group, args[0]}); err == nil && len(left) == 0 && cmd.HasParent() &&
			cmd.Parent().Name() == group {
			found = append(found, strings.Join(append([]string{cmd.CommandPath()}, args[1:]...), " "))
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
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
