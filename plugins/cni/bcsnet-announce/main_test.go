package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgram calls the program as a runtime does: variables and standard input in, an object on standard output.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "bcsnet-announce")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	const (
		right = `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce"}`
		gone  = "CNI_NETNS=/proc/1/fd/9999"
	)
	container := []string{"CNI_CONTAINERID=bcsnet-announce-test", "CNI_IFNAME=eth0", "CNI_PATH=/opt/cni/bin"}
	for name, c := range map[string]struct {
		command string
		env     []string
		stdin   string
		want    string
		fails   bool
	}{
		"VERSION": {command: "VERSION", env: []string{"CNI_PATH=/opt/cni/bin"}, stdin: `{"cniVersion":"1.1.0"}`,
			want: `"supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]`},
		"no command":             {want: "CNI plugin bcsnet-announce dev"},
		"unknown command":        {command: "PLUG", env: container, stdin: right, want: "unknown CNI_COMMAND: PLUG", fails: true},
		"STATUS":                 {command: "STATUS", env: []string{"CNI_PATH=/opt/cni/bin"}, stdin: right},
		"ADD: no variables":      {command: "ADD", stdin: right, want: "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH", fails: true},
		"ADD: no namespace":      {command: "ADD", env: container, stdin: right, want: "CNI_NETNS", fails: true},
		"ADD: unknown version":   {command: "ADD", env: append(container, gone), stdin: strings.Replace(right, "1.1.0", "7.0.0", 1), want: "incompatible CNI versions", fails: true},
		"ADD: too old a version": {command: "ADD", env: append(container, gone), stdin: strings.Replace(right, "1.1.0", "0.2.0", 1), want: "incompatible CNI versions", fails: true},
		"ADD: no prevResult":     {command: "ADD", env: append(container, gone), stdin: right, want: `"code":7,"msg":"bcsnet-announce has no prevResult`, fails: true},
		"ADD: not JSON":          {command: "ADD", env: append(container, gone), stdin: right[:20], want: `"code":6`, fails: true},
		"CHECK: no prevResult":   {command: "CHECK", env: append(container, gone), stdin: right, want: `"code":7`, fails: true},
		"CHECK: too old for it":  {command: "CHECK", env: append(container, gone), stdin: strings.Replace(right, "1.1.0", "0.3.1", 1), want: "does not allow CHECK", fails: true},
		"DEL: no variables":      {command: "DEL", stdin: right, want: "CNI_CONTAINERID,CNI_IFNAME,CNI_PATH", fails: true},
		"DEL: nothing is there":  {command: "DEL", env: container, stdin: right},
		"DEL: namespace gone":    {command: "DEL", env: append(container, gone), stdin: right},
		"GC: no list":            {command: "GC", env: []string{"CNI_PATH=/opt/cni/bin"}, stdin: right, want: "cni.dev/valid-attachments", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(program)
			cmd.Env = append(os.Environ(), c.env...)
			if c.command != "" {
				cmd.Env = append(cmd.Env, "CNI_COMMAND="+c.command)
			}
			cmd.Stdin = strings.NewReader(c.stdin)
			out, err := cmd.CombinedOutput()
			out = bytes.Join(bytes.Fields(out), []byte(" "))
			plain := strings.NewReplacer(`": `, `":`, ", ", ",", "[ ", "[", " ]", "]").Replace(string(out))
			if (err != nil) != c.fails || !strings.Contains(plain, c.want) || c.want == "" && plain != "" {
				t.Errorf("%v, %s, want %q", err, plain, c.want)
			}
		})
	}
}
