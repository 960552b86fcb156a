package node

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPreferred has files in the runtime's directory beside our conflist: those that a runtime takes before it are
// named first of all, and others are not named.
func TestPreferred(t *testing.T) {
	const (
		single = `{"cniVersion":"1.0.0","name":"other","type":"bridge","ipam":{"type":"host-local"}}`
		list   = `{"cniVersion":"1.0.0","name":"other","plugins":[` + single + `]}`
	)
	for name, c := range map[string]struct {
		files map[string]string
		named string
	}{
		"none":                       {},
		"behind ours":                {files: map[string]string{"20-other.conflist": list, "11-other.conf": single}},
		"before ours":                {files: map[string]string{"05-other.conflist": list}, named: "05-other.conflist"},
		"several, of all kinds":      {files: map[string]string{"05-other.conflist": list, "00-a.conf": single, "1-b.json": single}, named: "00-a.conf, 05-other.conflist, 1-b.json"},
		"names that begin like ours": {files: map[string]string{"10-aaa.conflist": list, "10-bcsnet.conf": single}, named: "10-aaa.conflist, 10-bcsnet.conf"},
		"another kind of file":       {files: map[string]string{"05-other.conflist.bak": list, "05-other.txt": list}},
		"what no runtime can read": {files: map[string]string{
			"01-x.conflist": "{", "02-x.conf": "", "03-x.conflist": `{"cniVersion":"1.0.0","name":"x"}`, "04-x.conf": `{"name":"x"}`,
		}},
		"with our plugins": {files: map[string]string{"05-lan.conflist": conflistText}},
		"Multus": {files: map[string]string{
			"00-multus.conf":     `{"cniVersion":"0.3.1","name":"multus","type":"multus-shim"}`,
			"01-multus.conflist": `{"cniVersion":"0.3.1","name":"multus","plugins":[{"type":"multus"}]}`,
		}},
		"Multus, and one that it prefers": {
			files: map[string]string{"00-multus.conf": `{"cniVersion":"0.3.1","name":"multus","type":"multus"}`, "05-other.conflist": list},
			named: "05-other.conflist",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newInstalled(t)
			for file, text := range c.files {
				put(t, filepath.Join(o.NetDir, file), text)
			}
			got := o.preferred()
			if c.named == "" && got != "" || c.named != "" && !strings.HasPrefix(got, c.named+" in "+o.NetDir+" before 10-bcsnet.conflist: ") {
				t.Errorf("%q, want those: %q", got, c.named)
			}
			o.ConflistFile = ""
			if got := o.preferred(); got != "" {
				t.Errorf("without a conflist: %q", got)
			}
		})
	}
}
