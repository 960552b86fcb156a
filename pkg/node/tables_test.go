package node

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
)

// slice returns an EndpointSlice with the port allocator.
func slice(port int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{
			{Name: new("metrics"), Port: new(int32(9))}, {Name: new("allocator"), Port: new(port)}, {Port: new(port)},
		},
	}
}

func endpoint(addr string, ready *bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{addr}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
}

func TestEndpointsOf(t *testing.T) {
	many := make([]discoveryv1.Endpoint, 100)
	for i := range many {
		many[i] = endpoint(fmt.Sprintf("10.0.1.%d", i), nil)
	}
	noName := slice(8090, endpoint("10.0.0.1", nil))
	noName.Ports = noName.Ports[:1]
	named := slice(8090, endpoint("a.example", nil))
	named.AddressType = discoveryv1.AddressTypeFQDN
	for name, c := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   []string
	}{
		"none":   {},
		"empty":  {slices: []*discoveryv1.EndpointSlice{slice(8090)}},
		"sorted": {slices: []*discoveryv1.EndpointSlice{slice(8090, endpoint("10.0.0.10", nil), endpoint("10.0.0.9", new(true)))}, want: []string{"10.0.0.9:8090", "10.0.0.10:8090"}},
		"one is not ready": {
			slices: []*discoveryv1.EndpointSlice{slice(8090, endpoint("10.0.0.1", new(false)), endpoint("10.0.0.2", new(true)))},
			want:   []string{"10.0.0.2:8090"},
		},
		"none is ready": {
			slices: []*discoveryv1.EndpointSlice{slice(8090, endpoint("10.0.0.1", new(false)))}, want: []string{"10.0.0.1:8090"},
		},
		"several slices, and one twice": {
			slices: []*discoveryv1.EndpointSlice{slice(8090, endpoint("fd00::1", nil)), slice(8091, endpoint("10.0.0.1", nil)), slice(8090, endpoint("fd00::1", nil))},
			want:   []string{"10.0.0.1:8091", "[fd00::1]:8090"},
		},
		"another port":   {slices: []*discoveryv1.EndpointSlice{noName}},
		"names of DNS":   {slices: []*discoveryv1.EndpointSlice{named}},
		"no port at all": {slices: []*discoveryv1.EndpointSlice{slice(0, endpoint("10.0.0.1", nil))}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, endpointsOf(c.slices, "allocator")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if n := len(endpointsOf([]*discoveryv1.EndpointSlice{slice(8090, many...)}, "allocator")); n != maxReplicas {
		t.Errorf("%d of 100, want %d", n, maxReplicas)
	}
}

// TestNewConfig has what the cluster says, what the node has, and what comes of both. The plugin reads all of it.
func TestNewConfig(t *testing.T) {
	old := `{"cluster":"c1","replicas":["http://10.0.0.7:8090"]}`
	for name, c := range map[string]struct {
		change    func(*Options)
		facts     facts
		has, want string
		err       string
	}{
		"all is known": {facts: knownFacts(), has: old,
			want: `{"cluster":"c1","node":"node-1","host":"10.0.0.11","replicas":["https://10.0.0.1:8090"],"serverName":"bcsnet-controller.bcsnet-system.svc"}`},
		"without TLS": {facts: facts{cluster: "c1", endpoints: []string{"10.0.0.1:8090", "[fd00::1]:8090"}}, change: func(o *Options) { o.CAFile = "" },
			want: `{"cluster":"c1","node":"node-1","host":"10.0.0.11","replicas":["http://10.0.0.1:8090","http://[fd00::1]:8090"],"serverName":"bcsnet-controller.bcsnet-system.svc"}`},
		"nothing is known, and the node has it": {has: old,
			want: `{"cluster":"c1","node":"node-1","host":"10.0.0.11","replicas":["https://10.0.0.7:8090"],"serverName":"bcsnet-controller.bcsnet-system.svc"}`},
		"no replica is left": {facts: facts{cluster: "c1"}, has: old,
			want: `{"cluster":"c1","node":"node-1","host":"10.0.0.11","replicas":["https://10.0.0.7:8090"],"serverName":"bcsnet-controller.bcsnet-system.svc"}`},
		"unusual names and directories": {facts: knownFacts(), change: func(o *Options) { o.ServerName, o.DataDir, o.RunDir = "s", "/d", "/r" },
			want: `{"cluster":"c1","node":"node-1","host":"10.0.0.11","replicas":["https://10.0.0.1:8090"],"serverName":"s","dataDir":"/d","runDir":"/r"}`},
		"another cluster's replicas": {facts: facts{cluster: "c2"}, has: old, err: "the replicas of the allocator are not known yet"},
		"nothing":                    {err: "the UID of kube-system is not known yet"},
	} {
		t.Run(name, func(t *testing.T) {
			o := optionsIn("/")
			o.DataDir, o.RunDir = netconf.DefaultDataDir, netconf.DefaultRunDir
			if c.change != nil {
				c.change(&o)
			}
			var has netconf.Node
			if c.has != "" {
				has = must(netconf.ParseNode([]byte(c.has)))
			}
			got, err := newConfig(o, c.facts, has)
			if c.err != "" {
				if !errors.Is(err, errFacts) || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if diff := cmp.Diff(c.want+"\n", string(got)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if _, err := netconf.ParseNode(got); err != nil {
				t.Errorf("the plugin: %v", err)
			}
		})
	}
}

func TestCheckConflist(t *testing.T) {
	list := func(ipam string) string {
		return `{"cniVersion":"1.1.0","name":"lan","plugins":[{"type":"bridge","ipam":` + ipam + `}]}`
	}
	for name, c := range map[string]struct{ text, want string }{
		"right":                  {text: list(`{"type":"bcsnet-ipam"}`)},
		"of others":              {text: list(`{"type":"host-local","ranges":7}`)},
		"empty":                  {want: "it is not a network configuration"},
		"cut off":                {text: list(`{}`)[:30], want: "it is not a network configuration"},
		"no name":                {text: `{"cniVersion":"1.1.0","plugins":[{"type":"bridge"}]}`, want: "it is not a network configuration"},
		"no plugins":             {text: `{"cniVersion":"1.1.0","name":"lan"}`, want: "plugins are missing"},
		"no version":             {text: `{"name":"lan","plugins":[{"type":"bridge"}]}`, want: "cniVersion is missing"},
		"a wrong field":          {text: list(`{"type":"bcsnet-ipam","host":"node-1"}`), want: `ipam.host: "node-1" is not the IP address of a host`},
		"what config.json says":  {text: list(`{"type":"bcsnet-ipam","configDir":"/elsewhere","netserviceEndpoint":"http://10.0.0.1:8090"}`)},
		"another plugin's field": {text: list(`{"type":"bcsnet-ipam","range":"10.0.0.0/24"}`), want: "the plugin bridge: ipam.range: bcsnet-ipam has no such field: write a pool"},
		"a single plugin's conf": {text: `{"cniVersion":"1.1.0","name":"lan","type":"bridge"}`, want: "plugins are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkConflist([]byte(c.text))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	full := func(ago time.Duration) *runstate.Full {
		return &runstate.Full{At: now.Add(-ago), Message: "no available IP"}
	}
	for name, c := range map[string]struct {
		signs signs
		want  Reason
		text  string
	}{
		"all is well":                 {want: ReasonReady},
		"not installed, above others": {signs: signs{installed: errSilent, questions: 9, unanswered: errSilent, full: full(0)}, want: ReasonNotInstalled, text: "no replica answers"},
		"the token is old":            {signs: signs{age: time.Hour + time.Second, life: time.Hour}, want: ReasonTokenExpired, text: "renewed 1h0m1s ago"},
		"the token is good":           {signs: signs{age: time.Hour, life: time.Hour}, want: ReasonReady},
		"nobody knows its life":       {signs: signs{age: time.Hour}, want: ReasonReady},
		"no answer once":              {signs: signs{unanswered: errSilent, questions: 1}, want: ReasonReady},
		"no answer twice":             {signs: signs{unanswered: errSilent, questions: 2}, want: ReasonAllocatorUnreachable, text: "pods that run keep"},
		"pools are full":              {signs: signs{full: full(time.Minute)}, want: ReasonPoolsFull, text: "no available IP"},
		"pools were full":             {signs: signs{full: full(2 * time.Minute)}, want: ReasonReady},
		"a clock that was set back":   {signs: signs{full: full(-3 * time.Hour)}, want: ReasonReady},
		"another conflist first":      {signs: signs{first: "05-x.conf in /d before 10-bcsnet.conflist", broken: "x"}, want: ReasonOtherConflistFirst, text: "05-x.conf in"},
		"a long message":              {signs: signs{installed: errors.New(strings.Repeat("x", 5000))}, want: ReasonNotInstalled, text: "…"},
	} {
		t.Run(name, func(t *testing.T) {
			c.signs.now = now
			got := judge(c.signs)
			if got.reason != c.want || !strings.Contains(got.message, c.text) || len(got.message) > maxMessage+len("…") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// jwt returns a token that is issued and ends at seconds.
func jwt(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func TestTokenLife(t *testing.T) {
	for text, want := range map[string]time.Duration{
		jwt(`{"iat":1000,"exp":4600}`): time.Hour, jwt(`{"iat":4600,"exp":1000}`): 0, jwt(`{"exp":4600}`): 0, jwt(`[]`): 0,
		jwt(`{"iat":1,"exp":9223372036854775807}`): 0, "a.b": 0, "": 0, "a.!.c": 0,
	} {
		if got := tokenLife(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestTokenAge has a token that is renewed, on a node whose clock is hours off and is set meanwhile.
func TestTokenAge(t *testing.T) {
	o := optionsIn(t.TempDir())
	if err := os.MkdirAll(o.ConfigDir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	o.Now = func() time.Time { return now }
	path := filepath.Join(o.ConfigDir, tokenFile)
	age := &tokens{options: o}
	want := func(what string, wanted time.Duration) {
		t.Helper()
		if got, life, err := age.age(); got != wanted || life != time.Hour || err != nil {
			t.Errorf("%s: %s of %s, %v; want %s", what, got, life, err, wanted)
		}
	}
	if _, _, err := age.age(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no token: %v", err)
	}
	put(t, path, jwt(`{"iat":1000,"exp":4600}`))
	want("a file of a time to come", 0)
	now = now.Add(20 * time.Minute)
	want("later", 20*time.Minute)
	put(t, path, jwt(`{"iat":2000,"exp":5600}`))
	want("renewed", 0)
	if err := os.Chtimes(path, now, now.Add(-50*time.Minute)); err != nil {
		t.Fatal(err)
	}
	age = &tokens{options: o}
	want("by the next process", 50*time.Minute)
	if err := os.Chtimes(path, now, now.Add(-50*time.Hour)); err != nil {
		t.Fatal(err)
	}
	age = &tokens{options: o}
	want("a file of a time that cannot be", 0)
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"right":                {change: func(*Options) {}},
		"no node":              {change: func(o *Options) { o.Node = "" }, want: "--node is missing"},
		"no host":              {change: func(o *Options) { o.Host = "" }, want: `--host "" is not the IP address`},
		"host, a name":         {change: func(o *Options) { o.Host = "node-1" }, want: "--host"},
		"a relative path":      {change: func(o *Options) { o.BinDir = "bin" }, want: `--bin-dir "bin" is not an absolute path`},
		"a path as a name":     {change: func(o *Options) { o.ConflistName = "../x.conflist" }, want: "--conflist-name"},
		"a hidden name":        {change: func(o *Options) { o.ConflistName = ".conflist" }, want: "--conflist-name"},
		"another extension":    {change: func(o *Options) { o.ConflistName = "10-bcsnet.yaml" }, want: "--conflist-name"},
		"service":              {change: func(o *Options) { o.Service = "bcsnet-controller" }, want: "--service"},
		"a token over HTTP":    {change: func(o *Options) { o.CAFile = "" }, want: "--token-file without --ca-file"},
		"a CA of two places":   {change: func(o *Options) { o.CAConfigMap = "a/b" }, want: "--ca-file and --ca-config-map"},
		"a CA by name alone":   {change: func(o *Options) { o.CAFile, o.CAConfigMap = "", "ca" }, want: `--ca-config-map "ca" is not NAMESPACE/NAME`},
		"address":              {change: func(o *Options) { o.HTTPBindAddress = "8093" }, want: "--http-bind-address"},
		"log level":            {change: func(o *Options) { o.LogLevel = "loud" }, want: "--log-level"},
		"two at the same time": {change: func(o *Options) { o.Node, o.LogLevel = "", "loud" }, want: "--log-level"},
	} {
		t.Run(name, func(t *testing.T) {
			o := optionsIn("/")
			c.change(&o)
			err := o.ValidateInstall()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
