// docs writes the reference of the command line: a Markdown page and a man page for every command. What it
// writes depends on the commands alone, not on the day or the machine.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli"
)

//go:generate go run . ../../docs

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: docs DIRECTORY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string) error {
	root := cli.Reference()
	gatherFlags(root)
	return errors.Join(
		writeAll(filepath.Join(dir, "reference", "cli"), ".md", root, page),
		writeFile(filepath.Join(dir, "reference", "cli", "README.md"), index(root)),
		writeAll(filepath.Join(dir, "man"), ".1", root, manPage),
	)
}

// gatherFlags lists the flags that go with every command once, in the command options, and hides them in the pages of
// the others.
func gatherFlags(root *cobra.Command) {
	options, _, err := root.Find([]string{"options"})
	if err != nil || options == root {
		panic("there is no command options") // a change of package cli that this program must follow
	}
	options.Long = "These flags go with every command:\n\n" + root.PersistentFlags().FlagUsagesWrapped(flagWidth)
	for _, f := range flagsOf(root.PersistentFlags()) {
		f.Hidden = true
	}
}

// writeAll writes a file for every command, and removes those of commands that are gone.
func writeAll(dir, extension string, root *cobra.Command, text func(*cobra.Command) ([]byte, error)) error {
	old, err := filepath.Glob(filepath.Join(dir, root.Name()+"*"+extension))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	for _, c := range commands(root) {
		content, err := text(c)
		if err == nil {
			err = writeFile(filepath.Join(dir, fileName(c)+extension), content)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.CommandPath(), err)
		}
	}
	return nil
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
