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

// guess returns the command that the user may mean by words that a group does not know, such as names from other tools;
// empty if there is none. The command is only suggested, never run.
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

// answers returns the suggestions for a command, by word.
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

// filled replaces each name in braces by the typed word, or by the name itself if no word was typed. Flags and nouns
// such as pool do not count as words.
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

// release returns the command that releases an address, a pool or a host, depending on the argument.
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
		return filled(addresses+"; if it is the address of a machine: "+host, args)
	case notAddress == nil:
		return filled(addresses, args)
	case strings.Contains(args[0], "/"):
		return filled("bcsnetctl ip release --endpoint {POD}", args)
	default:
		return filled(host+", bcsnetctl ip release --endpoint {NAME} the addresses of a pod or an owner", args)
	}
}

// guessFlag returns the replacement for a flag that a command does not know; empty if there is none.
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

// nounFirst returns the command for words in kubectl's order, verb before noun.
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

// elsewhere returns the command for a word whose group is missing, if exactly one group has it. Commands of lease count
// as those of ip.
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

// resourceNoun returns the group of commands for kubectl's name of a kind.
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

// bareDryRun replaces --dry-run without a value by --dry-run=client, as kubectl once did. A following word that is a
// value is kept. It changes nothing during completion, when the value may be incomplete.
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
