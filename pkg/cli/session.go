package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
)

// programName is how texts in this package call the program; users read the name that they called.
const programName = "bcsnetctl"

// session is one call of the program: its streams, what it knows of the terminal, and the way to the
// cluster.
type session struct {
	genericiooptions.IOStreams
	name    string
	version string
	now     func() time.Time
	getenv  func(string) string
	// out is what standard output can show.
	out terminal
	say *narrator
	// dry is the value of --dry-run; none for commands that change nothing.
	dry   dryRun
	flags *genericclioptions.ConfigFlags
	// config is the way to the cluster; nil before it is needed.
	config *rest.Config
	// unshown is why a help text could not be written.
	unshown error
	// user is the answer of who; nil before it is needed.
	user *string
}

func newSession(name, version string, streams genericiooptions.IOStreams) *session {
	s := &session{
		IOStreams: streams, name: name, version: version, now: time.Now, getenv: os.Getenv,
		flags: genericclioptions.NewConfigFlags(true),
	}
	s.out = terminalOf(streams.Out, s.getenv)
	s.say = &narrator{w: streams.ErrOut, term: terminalOf(streams.ErrOut, s.getenv), dry: &s.dry}
	// Namespaces are a filter of few commands here, and nothing is cached.
	s.flags.Namespace, s.flags.CacheDir = nil, nil
	return s
}

// calledName is the name of the program as its user types it: a kubectl plugin is called
// "kubectl bcsnet".
func calledName(arg0 string) string {
	name := strings.TrimSuffix(filepath.Base(arg0), ".exe")
	if plugin, ok := strings.CutPrefix(name, "kubectl-"); ok {
		return "kubectl " + strings.NewReplacer("-", " ", "_", "-").Replace(plugin)
	}
	return name
}

// hint says what to do next.
func (s *session) hint(format string, args ...any) {
	s.say.note("%s", s.called("hint: "+fmt.Sprintf(format, args...)))
}

// called puts the name that was called into a text.
func (s *session) called(text string) string {
	if s.name == programName {
		return text
	}
	return strings.ReplaceAll(text, programName+" ", s.name+" ")
}
