package app

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// ProgramName is the program's name in texts of this package. Called replaces it by the name that the user typed.
const ProgramName = "bcsnetctl"

// App is one call of the program: its streams, terminal, flags and the connection to the cluster.
type App struct {
	// Out and ErrOut are terminal.Writers, which make control characters visible.
	genericiooptions.IOStreams
	Name    string
	Version string
	Now     func() time.Time
	getenv  func(string) string
	// Terminal has the capabilities of standard output.
	Terminal terminal.Terminal
	Say      *Narrator
	// DryRun is the value of --dry-run. Commands that change nothing leave it at none.
	DryRun DryRun
	Flags  *genericclioptions.ConfigFlags
	// Config is set by Connect.
	Config *rest.Config
	// Unshown is the error of writing a help text.
	Unshown error
	// user caches the result of Author.
	user *string
}

// New prepares a call of the program under the name that the user typed.
func New(name, version string, streams genericiooptions.IOStreams) *App {
	s := &App{
		IOStreams: streams, Name: name, Version: version, Now: time.Now, getenv: os.Getenv,
		Flags: genericclioptions.NewConfigFlags(true),
	}
	s.Terminal = terminal.Of(streams.Out, s.getenv)
	errors := terminal.Of(streams.ErrOut, s.getenv)
	s.Out, s.ErrOut = terminal.NewWriter(streams.Out, s.Terminal), terminal.NewWriter(streams.ErrOut, errors)
	s.Say = &Narrator{W: s.ErrOut, Terminal: errors, dry: &s.DryRun}
	// Few commands filter by namespace, and nothing is cached: these common flags are left out.
	s.Flags.Namespace, s.Flags.CacheDir = nil, nil
	return s
}

// CalledName returns the name of the program as its user types it. A kubectl plugin is called "kubectl bcsnet".
func CalledName(arg0 string) string {
	name := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(plugin)
	}
	return name
}

// Hint prints what to do next.
func (s *App) Hint(format string, args ...any) {
	s.Say.Note("%s", s.Called("hint: "+fmt.Sprintf(format, args...)))
}

// Called replaces ProgramName in a text by the name that the user typed.
func (s *App) Called(text string) string {
	if s.Name == ProgramName {
		return text
	}
	return strings.ReplaceAll(text, ProgramName+" ", s.Name+" ")
}

// Quiet returns a copy of the call that writes its narration to w and discards its output.
func (s *App) Quiet(w io.Writer) *App {
	q := *s
	q.Terminal, q.Out, q.ErrOut = terminal.Terminal{}, io.Discard, w
	q.Say = &Narrator{W: w, dry: &q.DryRun}
	return &q
}
