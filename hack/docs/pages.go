package main

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// flagWidth is the width of lists of flags, as in the help.
const flagWidth = 80

// commands returns a command and those below it that the help shows, in the order of the help.
func commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			all = append(all, commands(sub)...)
		}
	}
	return all
}

func fileName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// written returns a copy of a command as the pages show it.
func written(c *cobra.Command) cobra.Command {
	c.DisableAutoGenTag = true
	shown := *c
	if c.HasAvailableSubCommands() {
		shown.Use, shown.DisableFlagsInUseLine = c.Use+" COMMAND", true
	}
	return shown
}

// page returns the Markdown page of a command. Its text is laid out for a terminal, and stays so.
func page(c *cobra.Command) ([]byte, error) {
	shown := written(c)
	if c.Long != "" {
		shown.Long = "```text\n" + strings.TrimSpace(c.Long) + "\n```"
	}
	var b bytes.Buffer
	link := func(file string) string { return strings.ReplaceAll(file, "_", "-") }
	if err := doc.GenMarkdownCustom(&shown, &b, link); err != nil {
		return nil, err
	}
	return tidy(regexp.MustCompile(`(?m)^##`).ReplaceAll(b.Bytes(), []byte("#"))), nil
}

func manPage(c *cobra.Command) ([]byte, error) {
	shown := written(c)
	if c.Long != "" {
		shown.Long = indent(c.Long)
	}
	var b bytes.Buffer
	if err := doc.GenMan(&shown, &doc.GenManHeader{Source: "bcsnet", Manual: "bcsnet"}, &b); err != nil {
		return nil, err
	}
	// The date would be that of the day.
	title := regexp.MustCompile(`(?m)^(\.TH "[^"]*" "[^"]*") "[^"]*"`)
	return tidy(title.ReplaceAll(b.Bytes(), []byte(`$1 ""`))), nil
}

// tidy takes blanks from the ends of lines.
func tidy(text []byte) []byte {
	text = regexp.MustCompile(`(?m)[ \t]+$`).ReplaceAll(text, nil)
	return append(bytes.TrimSpace(text), '\n')
}

// indent makes a block of what is laid out for a terminal.
func indent(text string) string {
	return regexp.MustCompile(`(?m)^(.+)$`).ReplaceAllString(strings.Trim(text, "\n"), "    $1")
}

func flagsOf(set *pflag.FlagSet) (all []*pflag.Flag) {
	set.VisitAll(func(f *pflag.Flag) { all = append(all, f) })
	return all
}

func index(root *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b,
		"# Commands\n\nThese pages are made from the help of the commands by `make generate`. "+
			"`kubectl bcsnet` is the same\n"+
			"program under another name: where a page says `%s pool list`, `kubectl bcsnet pool list` does the\nsame. "+
			"A release has man pages of the same text.\n\n| command | what it does |\n|---|---|\n", root.Name())
	for _, c := range commands(root) {
		fmt.Fprintf(&b, "| [%s](%s.md) | %s |\n", c.CommandPath(), fileName(c), c.Short)
	}
	return b.Bytes()
}
