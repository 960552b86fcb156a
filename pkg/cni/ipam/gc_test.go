package ipam

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/cni/attach"
	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
)

// TestGC has each list that a runtime may send: what the allocator is asked, and which attachments' files stay. A list
// that is none is refused, and nothing goes.
func TestGC(t *testing.T) {
	all := []string{"gone", "other", "valid", "young"}
	const list, kept = `[{"containerID":"valid","ifName":"eth0"}]`, `,"kept":[]`
	for name, c := range map[string]struct {
		// more goes into the configuration, and own into its section ipam.
		more, own  string
		asked, err string
		keep       []string
		// kept is what the answer has beside the addresses.
		kept string
	}{
		"some are valid":   {`,"cni.dev/valid-attachments":[{"containerID":"valid","ifname":"eth0"}]`, "", list, "", []string{"other", "valid", "young"}, kept},
		"the draft's name": {`,"cni.dev/attachments":[{"containerID":"valid","ifname":"eth0"}]`, "", list, "", []string{"other", "valid", "young"}, kept},
		"both names": {
			`,"cni.dev/attachments":[{"containerID":"valid","ifname":"eth0"}],"cni.dev/valid-attachments":[{"containerID":"valid","ifname":"eth0"}]`,
			"", list, "", []string{"other", "valid", "young"}, kept,
		},
		"another interface":    {`,"cni.dev/valid-attachments":[{"containerID":"valid","ifname":"net1"}]`, "", `[{"containerID":"valid","ifName":"net1"}]`, "", []string{"other", "young"}, kept},
		"none is valid":        {`,"cni.dev/valid-attachments":[]`, "", `[]`, "", []string{"other", "young"}, kept},
		"none, as libcni says": {`,"cni.dev/valid-attachments":null,"cni.dev/attachments":null`, "", `[]`, "", []string{"other", "young"}, kept},
		"no list":              {"", "", "", "without cni.dev/valid-attachments", all, kept},
		"an object":            {`,"cni.dev/valid-attachments":{}`, "", "", "cni.dev/valid-attachments", all, kept},
		"strings":              {`,"cni.dev/valid-attachments":["valid"]`, "", "", "cni.dev/valid-attachments", all, kept},
		"an entry of null":     {`,"cni.dev/valid-attachments":[null]`, "", "", "cni.dev/valid-attachments[0]", all, kept},
		"no interface":         {`,"cni.dev/valid-attachments":[{"containerID":"valid"}]`, "", "", "cni.dev/valid-attachments[0]", all, kept},
		"another word":         {`,"cni.dev/valid_attachments":[]`, "", "", "without cni.dev/valid-attachments", all, kept},
		"two lists": {
			`,"cni.dev/valid-attachments":[],"cni.dev/attachments":[{"containerID":"valid","ifname":"eth0"}]`, "", "", "cni.dev/attachments", all, kept,
		},
		"too many": {
			`,"cni.dev/valid-attachments":[{"containerID":"valid","ifname":"eth0"}` + strings.Repeat(`,{"containerID":"c","ifname":"eth0"}`, wire.MaxAttachments) + `]`,
			"", "", fmt.Sprint(wire.MaxAttachments+1, " attachments"), all, kept,
		},
		"disableGC":                          {`,"cni.dev/valid-attachments":[],"disableGC":true`, "", "", "", all, kept},
		"ipam.disableGC":                     {`,"cni.dev/valid-attachments":[]`, `,"disableGC":true`, "", "", all, kept},
		"the allocator has it":               {`,"cni.dev/valid-attachments":null`, "", `[]`, "", []string{"gone", "other", "young"}, `,"kept":[{"containerID":"gone","ifName":"eth0"}]`},
		"an allocator of an earlier release": {`,"cni.dev/valid-attachments":null`, "", `[]`, "", all, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				text, _ := io.ReadAll(q.Body)
				var body struct {
					Attachments json.RawMessage `json:"attachments"`
				}
				_ = json.Unmarshal(text, &body)
				asked = string(body.Attachments)
				fmt.Fprintf(w, `{"code":0,"result":true,"request_id":%q,"data":{"host":"10.0.0.11","cniNetwork":"lan","ips":[]%s}}`,
					q.Header.Get("X-Request-Id"), c.kept)
			}))
			defer server.Close()
			dir := t.TempDir()
			files := attach.In(dir + "/r")
			for _, id := range all {
				network := "lan"
				if id == "other" {
					network = "storage"
				}
				a := &attach.Attachment{ContainerID: id, IfName: "eth0", CNINetwork: network, Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.21")}}
				if err := files.Write(a); err != nil {
					t.Fatal(err)
				}
				if id == "young" {
					continue
				}
				before := time.Now().Add(-time.Hour)
				if err := os.Chtimes(filepath.Join(files.Dir, id+":eth0.json"), before, before); err != nil {
					t.Fatal(err)
				}
			}
			config := strings.TrimSuffix(string(configured(c.own)), "}") + c.more + "}"
			var out, log bytes.Buffer
			err := onNode(t, dir, &out, &log, server.URL).Collect(context.Background(), []byte(config))
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("GC: %v, want %q", err, c.err)
			}
			if asked != c.asked {
				t.Errorf("asked with %.200s, want %.200s", asked, c.asked)
			}
			var kept []string
			for _, id := range all {
				if _, err := files.Read(id, "eth0"); err == nil {
					kept = append(kept, id)
				}
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(c.keep)), kept); diff != "" {
				t.Errorf("files kept (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGCOfAnEarlierRelease has an allocator that collects for no network: nothing is collected, and that is no failure
// while releases are mixed. The files stay.
func TestGCOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"code":2,"result":false,"reason":"NotFound","message":"there is no %s","request_id":%q,"data":null}`,
			q.URL.Path, q.Header.Get("X-Request-Id"))
	}))
	defer server.Close()
	dir := t.TempDir()
	files := attach.In(dir + "/r")
	a := &attach.Attachment{ContainerID: "gone", IfName: "eth0", CNINetwork: "lan", Addrs: []netip.Addr{netip.MustParseAddr("10.0.0.21")}}
	if err := files.Write(a); err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(files.Dir, "gone:eth0.json"), before, before); err != nil {
		t.Fatal(err)
	}
	config := strings.TrimSuffix(string(configured("")), "}") + `,"cni.dev/valid-attachments":[]}`
	var out, log bytes.Buffer
	if err := onNode(t, dir, &out, &log, server.URL).Collect(context.Background(), []byte(config)); err != nil {
		t.Errorf("GC: %v", err)
	}
	if _, err := files.Read("gone", "eth0"); err != nil {
		t.Errorf("the file of a lease that nobody collected: %v", err)
	}
}
