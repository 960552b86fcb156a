package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// audit has the API server write down who lists what. A list of all addresses, pods, events or pools in one answer
// takes the memory of all of them, at the API server and here, and the time of all before the first.
type audit struct {
	dir  string
	logs int // of one API server each
}

// paged are the resources of which there may be more than a page.
const paged = "bcsnetips pods events bcsnetpools"

func newAudit() (a *audit, err error) {
	a = &audit{}
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

func (a *audit) policy() string { return filepath.Join(a.dir, "policy.yaml") }

// option has a kube-apiserver write a log.
func (a *audit) option() controlplane.Option {
	a.logs++
	return controlplane.WithArgs("kube-apiserver", "--audit-policy-file="+a.policy(), "--audit-log-mode=blocking-strict",
		"--audit-log-path="+filepath.Join(a.dir, fmt.Sprintf("audit-%d.log", a.logs)))
}

// check returns an error for each list of the command line or the controller that may be longer than a page. Where only
// some tests ran, or none, there may be no list at all.
func (a *audit) check() error {
	some := false
	for _, name := range []string{"test.run", "test.skip", "test.list", "test.fuzz"} {
		some = some || flag.Lookup(name).Value.String() != ""
	}
	logs, err := filepath.Glob(filepath.Join(a.dir, "audit-*.log"))
	if err != nil {
		return err
	}
	total, wrong := 0, map[string]bool{}
	for _, log := range logs {
		n, err := unlimited(log, wrong)
		if err != nil {
			return err
		}
		total += n
	}
	var all []error
	if total == 0 && !some {
		all = append(all, errors.New("the audit logs tell of no list"))
	}
	for what := range wrong {
		all = append(all, errors.New(what))
	}
	return errors.Join(all...)
}

// unlimited adds to wrong the lists in a log that have no limit, and returns how many lists there are.
func unlimited(log string, wrong map[string]bool) (n int, err error) {
	file, err := os.Open(log)
	if err != nil {
		return 0, err
	}
	defer file.Close()
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
			return n, err
		}
		who, _, _ := strings.Cut(event.UserAgent, "/")
		if who != app.ProgramName && who != "bcsnet-controller" || !strings.Contains(paged, event.ObjectRef.Resource) {
			continue
		}
		u, err := url.Parse(event.RequestURI)
		if err != nil {
			return n, err
		}
		n++
		if u.Query().Get("limit") == "" {
			wrong[fmt.Sprintf("%s lists %s without a limit", who, event.RequestURI)] = true
		}
	}
	return n, lines.Err()
}
