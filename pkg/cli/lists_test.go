package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
)

// audit has the API server write down who lists what. A list of all addresses, pods, events or pools in one answer takes the
// memory of all of them, at the API server and here, and the time of all before the first.
type audit struct{ dir string }

// paged are the resources of which there may be more than a page.
const paged = "bcsnetips pods events bcsnetpools"

func newAudit() (a audit, err error) {
	if a.dir, err = os.MkdirTemp("", "lists-"); err != nil {
		return a, err
	}
	return a, os.WriteFile(a.policy(), []byte(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [list]
- level: None
`), 0o600)
}

func (a audit) policy() string { return filepath.Join(a.dir, "policy.yaml") }

func (a audit) log() string { return filepath.Join(a.dir, "audit.log") }

// args have kube-apiserver write the log.
func (a audit) args() []string {
	return []string{"--audit-policy-file=" + a.policy(), "--audit-log-path=" + a.log(), "--audit-log-mode=blocking-strict"}
}

// check returns an error for each list of the command line or the controller that may be longer than a page. Where only some
// tests ran, or none, there may be no list at all.
func (a audit) check() error {
	some := false
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		some = some || flag.Lookup(name).Value.String() != ""
	}
	file, err := os.Open(a.log())
	switch {
	case errors.Is(err, fs.ErrNotExist) && some:
		return nil
	case err != nil:
		return err
	}
	defer file.Close()
	wrong, lists := map[string]bool{}, 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			RequestURI string `json:"requestURI"`
			UserAgent  string `json:"userAgent"`
			ObjectRef  struct {
				Resource string `json:"resource"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return err
		}
		who, _, _ := strings.Cut(event.UserAgent, "/")
		if who != app.ProgramName && who != "bcsnet-controller" || !strings.Contains(paged, event.ObjectRef.Resource) {
			continue
		}
		u, err := url.Parse(event.RequestURI)
		if err != nil {
			return err
		}
		lists++
		if u.Query().Get("limit") == "" {
			wrong[fmt.Sprintf("%s lists %s without a limit", who, event.RequestURI)] = true
		}
	}
	if lists == 0 && !some {
		return errors.New("the audit log tells of no list")
	}
	all := []error{lines.Err()}
	for what := range wrong {
		all = append(all, errors.New(what))
	}
	return errors.Join(all...)
}
