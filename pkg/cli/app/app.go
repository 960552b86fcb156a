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

// ProgramName is how texts in this package call the program; users read the name that they called.
const ProgramName = "bcsnetctl"

// App is one call of the program: its streams, what it knows of the terminal, and the way to the
// cluster.
type App struct {
	// The streams make what is printed visible: see terminal.Writer.
	genericiooptions.IOStreams
	Name    string
	Version string
	Now     func() time.Time
	getenv  func(string) string
	// Terminal is what standard output can show.
	Terminal terminal.Terminal
	Say      *Narrator
	// DryRun is the value of --dry-run; none for commands that change nothing.
	DryRun DryRun
	Flags  *genericclioptions.ConfigFlags
	// Config is the way to the cluster; nil before it is needed.
	Config *rest.Config
	// Unshown is why a help text could not be written.
	Unshown error
	// user is what Author found out; nil before it is needed.
	user *string
}

// New prepares a call of the program under the name that its user typed.
func New(name, version string, streams genericiooptions.IOStreams) *App {
	s := &App{
		IOStreams: streams, Name: name, Version: version, Now: time.Now, getenv: os.Getenv,
		Flags: genericclioptions.NewConfigFlags(true),
	}
	s.Terminal = terminal.Of(streams.Out, s.getenv)
	errors := terminal.Of(streams.ErrOut, s.getenv)
	s.Out, s.ErrOut = terminal.NewWriter(streams.Out, s.Terminal), terminal.NewWriter(streams.ErrOut, errors)
	s.Say = &Narrator{W: s.ErrOut, Terminal: errors, dry: &s.DryRun}
	// Namespaces are a filter of few commands here, and nothing is cached.
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

// Called puts the name that was called into a text.
func (s *App) Called(text string) string {
	if s.Name == ProgramName {
		return text
	}
	return strings.ReplaceAll(text, ProgramName+" ", s.Name+" ")
}

// Quiet returns the call as one whose narration goes to w: what it reads is shown elsewhere than on the terminal.
func (s *App) Quiet(w io.Writer) *App {
	q := *s
	q.Terminal, q.Out, q.ErrOut = terminal.Terminal{}, io.Discard, w
	q.Say = &Narrator{W: w, dry: &q.DryRun}
	return &q
}
