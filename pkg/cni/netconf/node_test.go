package netconf

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseNode(t *testing.T) {
	got, err := ParseNode([]byte(`{"cluster":"c1","node":"node-1","host":"10.0.0.11","replicas":["https://10.0.0.1:8090"],
		"serverName":"bcsnet-controller.bcsnet-system.svc","dataDir":"/b","runDir":"/c","later":{}}`))
	want := Node{
		Cluster: "c1", Name: "node-1", Host: netip.MustParseAddr("10.0.0.11"), Replicas: urls("https://10.0.0.1:8090"),
		ServerName: "bcsnet-controller.bcsnet-system.svc", DataDir: "/b", RunDir: "/c",
	}
	if diff := cmp.Diff(want, got, compare); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestParseNodeWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, field string }{
		"cluster":    {`{"cluster":1}`, "cluster"},
		"node":       {`{"node":1}`, "node"},
		"host":       {`{"host":"x"}`, "host"},
		"replicas":   {`{"replicas":{}}`, "replicas"},
		"replica":    {`{"replicas":["https://"]}`, "replicas[0]"},
		"serverName": {`{"serverName":1}`, "serverName"},
		"dataDir":    {`{"dataDir":"x"}`, "dataDir"},
		"runDir":     {`{"runDir":"x"}`, "runDir"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseNode([]byte(c.text))
			if problem, ok := errors.AsType[*Problem](err); !ok || problem.Field != c.field {
				t.Errorf("%v, want one about %s", err, c.field)
			}
		})
	}
}

// TestMerge has each field of the two: the conflist names the host, and config.json all that is root's.
func TestMerge(t *testing.T) {
	node := Node{
		Cluster: "c1", Host: netip.MustParseAddr("10.0.0.11"), Replicas: urls("https://10.0.0.1:8090"), ServerName: "s",
		DataDir: "/b", RunDir: "/c",
	}
	for name, c := range map[string]struct {
		conf Conflist
		node Node
		want Settings
	}{
		"config.json alone": {
			node: node,
			want: Settings{
				Cluster: "c1", Host: node.Host, Replicas: node.Replicas, ServerName: "s", DataDir: "/b", RunDir: "/c",
			},
		},
		"conflist alone": {
			conf: Conflist{Host: netip.MustParseAddr("10.0.0.12"), Replicas: urls("http://a")},
			want: Settings{
				Host: netip.MustParseAddr("10.0.0.12"), Replicas: urls("http://a"), ByConflist: true, DataDir: DefaultDataDir,
				RunDir: DefaultRunDir,
			},
		},
		"each": {
			conf: Conflist{Host: netip.MustParseAddr("10.0.0.12"), Replicas: urls("http://a")},
			node: node,
			want: Settings{
				Cluster: "c1", Host: netip.MustParseAddr("10.0.0.12"), Replicas: node.Replicas, ServerName: "s", DataDir: "/b",
				RunDir: "/c",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Merge(c.conf, c.node)
			if diff := cmp.Diff(c.want, got, compare); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := got.Complete(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestComplete(t *testing.T) {
	for want, s := range map[string]Settings{
		"ipam.host":               {Replicas: urls("http://a")},
		"ipam.netserviceEndpoint": {Host: netip.MustParseAddr("10.0.0.11")},
	} {
		if err := s.Complete(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
