// docs writes a page for every command: Markdown for the reference, or a man page for a release. The pages depend only
// on the commands, not on the day or the machine.
//
//	go run ./hack/docs docs/reference/cli
//	go run ./hack/docs -man dist/man
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/bcsnet/bcsnet/pkg/cli"
)

//go:generate go run . ../../docs/reference/cli

func main() {
	man := flag.Bool("man", false, "write man pages in place of Markdown")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: docs [-man] DIRECTORY")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	write := writeReference
	if *man {
		write = writeManPages
	}
	if err := write(flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeReference writes a Markdown page for every command, and an index of them.
func writeReference(dir string) error {
	root := reference()
	return errors.Join(writeAll(dir, ".md", root, page), writeFile(filepath.Join(dir, "README.md"), index(root)))
}

func writeManPages(dir string) error { return writeAll(dir, ".1", reference(), manPage) }

// reference returns the root of the command tree as the pages show it.
func reference() *cobra.Command {
	root := cli.Reference()
	gatherFlags(root)
	return root
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

// writeAll writes a file for every command, and removes the files of commands that no longer exist.
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
