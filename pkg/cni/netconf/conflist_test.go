package netconf

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var compare = cmp.Options{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	cmp.Comparer(func(a, b *url.URL) bool { return a.String() == b.String() }),
}

func urls(texts ...string) (all []*url.URL) {
	for _, text := range texts {
		u, err := url.Parse(text)
		if err != nil {
			panic(err)
		}
		all = append(all, u)
	}
	return all
}

func addrs(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestParse(t *testing.T) {
	table := 100
	for name, c := range map[string]struct {
		text, args string
		want       Conflist
	}{
		"as the released plugin is configured": {
			text: `{"cniVersion":"0.3.0","name":"lan","type":"bridge","bridge":"br0","ipam":{"type":"bcsnet-ipam","host":"10.0.0.11",
				"netserviceEndpoint":"127.0.0.1:8090","routes":[{"dst":"0.0.0.0/0"}],"logDir":"/data/bcs/logs"}}`,
			args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=3f4e;K8S_POD_UID=u1",
			want: Conflist{
				CNIVersion: "0.3.0", Name: "lan", Pod: Pod{"shop", "web-0", "u1"}, Host: netip.MustParseAddr("10.0.0.11"),
				Replicas: urls("http://127.0.0.1:8090"),
				Routes:   []Route{{Dst: netip.MustParsePrefix("0.0.0.0/0")}},
			},
		},
		"every field": {
			text: `{"cniVersion":"1.1.0","name":"lan","type":"macvlan","master":"eth0.7","ipam":{"type":"bcsnet-ipam",
				"host":"2001:db8::1","cluster":"c1","netserviceEndpoint":["https://10.0.0.1:8090","https://10.0.0.2:8090/","https://10.0.0.1:8090"],
				"serverName":"s","configDir":"/a","dataDir":"/b","runDir":"/c","logDir":"/d","network":"blue",
				"ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv6","IPv4"],
				"routes":[{"dst":"10.1.2.3/8","gw":"10.0.0.254","mtu":1400,"advmss":1360,"priority":5,"table":100},{"dst":"::/0"}],
				"probe":true,"disableGC":true,"statusFails":["allocator","pools"],"later":1}}`,
			want: Conflist{
				CNIVersion: "1.1.0", Name: "lan", Host: netip.MustParseAddr("2001:db8::1"),
				Replicas: urls("https://10.0.0.1:8090", "https://10.0.0.2:8090"), Network: "blue", FamilyPolicy: "PreferDualStack", Families: []string{"IPv6", "IPv4"},
				Routes: []Route{
					{
						Dst: netip.MustParsePrefix("10.0.0.0/8"), GW: netip.MustParseAddr("10.0.0.254"), MTU: 1400, AdvMSS: 1360,
						Priority: 5, Table: &table,
					},
					{Dst: netip.MustParsePrefix("::/0")},
				},
				VLAN: VLAN{Master: "eth0.7"}, Probe: true, DisableGC: true, StatusFails: []string{"allocator", "pools"},
				Former: []string{"ipam.cluster", "ipam.configDir", "ipam.dataDir", "ipam.runDir", "ipam.serverName"},
				Unknown: []*Problem{{"ipam.later", "bcsnet-ipam has no such field: leave it out, or write it right: there are " +
					strings.Join(ownFields(), ", ")}},
			},
		},
		"several URLs with commas": {
			text: `{"ipam":{"netserviceEndpoint":"http://a:1, http://b:2"}}`,
			want: Conflist{Replicas: urls("http://a:1", "http://b:2")},
		},
		"the type alone": {text: `{"type":"bcsnet-ipam"}`},
		"called without a main plugin": {
			text: `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-ipam","host":"10.0.0.11"}`,
			want: Conflist{CNIVersion: "1.1.0", Name: "lan", Host: netip.MustParseAddr("10.0.0.11")},
		},
		"of the chained plugin": {
			text: `{"cniVersion":"1.1.0","name":"lan","type":"bcsnet-announce","host":"no address, and not ours"}`,
			want: Conflist{CNIVersion: "1.1.0", Name: "lan"},
		},
		"wishes in every place, and they agree": {
			text: `{"runtimeConfig":{"ips":["10.0.0.5/24","2001:db8::5"],"mac":"02:00:00:00:00:0A"},
				"args":{"cni":{"ips":["2001:db8::5","10.0.0.5"],"mac":"02-00-00-00-00-0a"}}}`,
			args: "IP=10.0.0.5,2001:db8::5/64;MAC=02:00:00:00:00:0a",
			want: Conflist{Wish: Wish{
				Addrs: addrs("10.0.0.5", "2001:db8::5"), MAC: "02:00:00:00:00:0a",
				Lengths: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/24"), netip.MustParsePrefix("2001:db8::5/64")},
			}},
		},
		"IP of CNI_ARGS":   {text: `{}`, args: "IP=10.0.0.5", want: Conflist{Wish: Wish{Addrs: addrs("10.0.0.5")}}},
		"vlan of a bridge": {text: `{"vlan":7}`, want: Conflist{VLAN: VLAN{ID: 7, Field: "vlan"}}},
		"vlanId":           {text: `{"vlanId":8,"master":"eth0"}`, want: Conflist{VLAN: VLAN{ID: 8, Field: "vlanId", Master: "eth0"}}},
		"vlan 0 is none":   {text: `{"vlan":0}`},
		"GC": {
			text: `{"cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}],"disableGC":true}`,
			want: Conflist{Valid: []Attachment{{"a", "eth0"}}, DisableGC: true},
		},
		"GC, by the draft's name":     {text: `{"cni.dev/attachments":[{"containerID":"a","ifname":"eth0"}]}`, want: Conflist{Valid: []Attachment{{"a", "eth0"}}}},
		"GC of nothing, as by libcni": {text: `{"cni.dev/valid-attachments":null}`, want: Conflist{Valid: []Attachment{}}},
		"prevResult":                  {text: `{"prevResult":{"ips":[]}}`, want: Conflist{PrevResult: []byte(`{"ips":[]}`)}},
		"nulls":                       {text: `{"ipam":null,"runtimeConfig":null,"args":{"cni":null},"prevResult":null,"vlan":null,"name":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(c.text), c.args)
			if diff := cmp.Diff(c.want, got, compare); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestParseWrong has each field wrong in turn. The problem names the field, and the others are read all the same.
func TestParseWrong(t *testing.T) {
	for name, c := range map[string]struct{ text, args, field, want string }{
		"name":                 {text: `{"name":7}`, field: "name", want: "7 is not a string"},
		"cniVersion":           {text: `{"cniVersion":1.1}`, field: "cniVersion", want: "not a string"},
		"disableGC":            {text: `{"disableGC":"yes"}`, field: "disableGC", want: `"yes" is not true or false`},
		"ipam":                 {text: `{"ipam":"bcsnet-ipam"}`, field: "ipam", want: "not an object"},
		"ipam, a list":         {text: `{"ipam":[]}`, field: "ipam", want: "not an object"},
		"vlan":                 {text: `{"vlan":"7"}`, field: "vlan", want: "not a whole number"},
		"vlan too large":       {text: `{"vlan":4095}`, field: "vlan", want: "4095 is not in 0-4094"},
		"vlan below 0":         {text: `{"vlan":-1}`, field: "vlan", want: "-1"},
		"vlan and vlanId":      {text: `{"vlan":7,"vlanId":8}`, field: "vlanId", want: "it is 8, and vlan is 7"},
		"master":               {text: `{"master":7}`, field: "master", want: "not a string"},
		"host":                 {text: `{"ipam":{"host":"node-1"}}`, field: "ipam.host", want: `"node-1" is not the IP address of a host`},
		"host 0.0.0.0":         {text: `{"ipam":{"host":"0.0.0.0"}}`, field: "ipam.host", want: "0.0.0.0"},
		"host with a zone":     {text: `{"ipam":{"host":"fe80::1%eth0"}}`, field: "ipam.host", want: "fe80::1%eth0"},
		"host, a number":       {text: `{"ipam":{"host":10}}`, field: "ipam.host", want: "not a string"},
		"endpoint, no host":    {text: `{"ipam":{"netserviceEndpoint":"http://"}}`, field: "ipam.netserviceEndpoint[0]", want: "names no host"},
		"endpoint, a scheme":   {text: `{"ipam":{"netserviceEndpoint":"ftp://a"}}`, field: "ipam.netserviceEndpoint[0]", want: "neither"},
		"endpoint, a path":     {text: `{"ipam":{"netserviceEndpoint":["http://a","http://b/v1"]}}`, field: "ipam.netserviceEndpoint[1]", want: "more than"},
		"endpoint, a password": {text: `{"ipam":{"netserviceEndpoint":"http://u:p@a"}}`, field: "ipam.netserviceEndpoint[0]", want: "more than"},
		"endpoint, no URL":     {text: `{"ipam":{"netserviceEndpoint":"http://a b"}}`, field: "ipam.netserviceEndpoint[0]", want: "not a URL"},
		"endpoint, a comma":    {text: `{"ipam":{"netserviceEndpoint":"http://a,"}}`, field: "ipam.netserviceEndpoint[1]", want: `""`},
		"endpoint, a number":   {text: `{"ipam":{"netserviceEndpoint":8090}}`, field: "ipam.netserviceEndpoint", want: "not a string"},
		"endpoint, numbers":    {text: `{"ipam":{"netserviceEndpoint":[8090]}}`, field: "ipam.netserviceEndpoint", want: "not a list of strings"},
		"network":              {text: `{"ipam":{"network":true}}`, field: "ipam.network", want: "not a string"},
		"ipFamilyPolicy":       {text: `{"ipam":{"ipFamilyPolicy":"DualStack"}}`, field: "ipam.ipFamilyPolicy", want: "SingleStack PreferDualStack RequireDualStack"},
		"ipFamilies":           {text: `{"ipam":{"ipFamilies":["IPv4","ipv6"]}}`, field: "ipam.ipFamilies[1]", want: `"ipv6"`},
		"ipFamilies, a third":  {text: `{"ipam":{"ipFamilies":["IPv4","IPv6","IPv4"]}}`, field: "ipam.ipFamilies", want: "twice"},
		"ipFamilies, twice":    {text: `{"ipam":{"ipFamilies":["IPv6","IPv6"]}}`, field: "ipam.ipFamilies", want: "twice"},
		"ipFamilies, a string": {text: `{"ipam":{"ipFamilies":"IPv4"}}`, field: "ipam.ipFamilies", want: "not a list of strings"},
		"routes":               {text: `{"ipam":{"routes":{}}}`, field: "ipam.routes", want: "documented"},
		"route":                {text: `{"ipam":{"routes":["0.0.0.0/0"]}}`, field: "ipam.routes[0]", want: "not an object"},
		"route, dst":           {text: `{"ipam":{"routes":[{"dst":"0.0.0.0/0"},{"dst":"10.0.0.1"}]}}`, field: "ipam.routes[1].dst", want: `"10.0.0.1" is not a network`},
		"route, no dst":        {text: `{"ipam":{"routes":[{"gw":"10.0.0.1"}]}}`, field: "ipam.routes[0].dst", want: `""`},
		"route, gw":            {text: `{"ipam":{"routes":[{"dst":"0.0.0.0/0","gw":"x"}]}}`, field: "ipam.routes[0].gw", want: `"x"`},
		"route, family":        {text: `{"ipam":{"routes":[{"dst":"0.0.0.0/0","gw":"::1"}]}}`, field: "ipam.routes[0].gw", want: "another family"},
		"route, mtu":           {text: `{"ipam":{"routes":[{"dst":"0.0.0.0/0","mtu":-1}]}}`, field: "ipam.routes[0].mtu", want: "below 0"},
		"probe":                {text: `{"ipam":{"probe":1}}`, field: "ipam.probe", want: "not true or false"},
		"ipam.disableGC":       {text: `{"ipam":{"disableGC":1}}`, field: "ipam.disableGC", want: "not true or false"},
		"statusFails":          {text: `{"ipam":{"statusFails":["everything"]}}`, field: "ipam.statusFails[0]", want: "[allocator pools]"},
		"runtimeConfig":        {text: `{"runtimeConfig":[]}`, field: "runtimeConfig", want: "not an object"},
		"runtimeConfig.ips":    {text: `{"runtimeConfig":{"ips":["10.0.0.256"]}}`, field: "runtimeConfig.ips[0]", want: "10.0.0.256"},
		"a length of 33":       {text: `{"runtimeConfig":{"ips":["10.0.0.5/33"]}}`, field: "runtimeConfig.ips[0]", want: "10.0.0.5/33"},
		"two of a family":      {text: `{"runtimeConfig":{"ips":["10.0.0.5","10.0.0.6"]}}`, field: "runtimeConfig.ips[1]", want: "second address"},
		"multicast":            {text: `{"runtimeConfig":{"ips":["224.0.0.1"]}}`, field: "runtimeConfig.ips[0]", want: "224.0.0.1"},
		"lengths that differ":  {text: `{"runtimeConfig":{"ips":["10.0.0.5/24"]},"args":{"cni":{"ips":["10.0.0.5/25"]}}}`, field: "args.cni.ips[0]", want: "10.0.0.5/24"},
		"wishes that differ":   {text: `{"runtimeConfig":{"ips":["10.0.0.5"]},"args":{"cni":{"ips":["10.0.0.6"]}}}`, field: "args.cni.ips", want: "[10.0.0.5]"},
		"mac":                  {text: `{"runtimeConfig":{"mac":"02:00"}}`, field: "runtimeConfig.mac", want: `"02:00"`},
		"mac of many":          {text: `{"args":{"cni":{"mac":"01:00:5e:00:00:01"}}}`, field: "args.cni.mac", want: "one Ethernet interface"},
		"MACs that differ":     {text: `{"runtimeConfig":{"mac":"02:00:00:00:00:01"}}`, args: "MAC=02:00:00:00:00:02", field: FieldArgs, want: "another field"},
		"args":                 {text: `{"args":7}`, field: "args", want: "not an object"},
		"args.cni":             {text: `{"args":{"cni":7}}`, field: "args.cni", want: "not an object"},
		"CNI_ARGS":             {text: `{}`, args: "K8S_POD_NAME", field: FieldArgs, want: "K8S_POD_NAME"},
		"CNI_ARGS, unknown":    {text: `{}`, args: "COLOR=red", field: FieldArgs, want: "COLOR"},
		"CNI_ARGS, IP":         {text: `{}`, args: "IP=x", field: FieldArgs + "[0]", want: `"x"`},
		"attachments":          {text: `{"cni.dev/valid-attachments":{}}`, field: "cni.dev/valid-attachments", want: "not a list"},
		"attachment":           {text: `{"cni.dev/valid-attachments":[{"containerID":"a"}]}`, field: "cni.dev/valid-attachments[0]", want: "ifname"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.TrimSuffix(c.text, "}")
			if text != "{" {
				text += ","
			}
			got, err := Parse([]byte(text+`"type":"x"}`), c.args)
			var problem *Problem
			if !errors.As(err, &problem) || problem.Field != c.field || !strings.Contains(problem.Text, c.want) {
				t.Errorf("%v, want %s: …%s…", err, c.field, c.want)
			}
			if got.Valid != nil {
				t.Errorf("a list of attachments that is wrong became %v", got.Valid)
			}
		})
	}
}

// TestParseKeeps has one wrong field among others: a DEL goes by those.
func TestParseKeeps(t *testing.T) {
	got, err := Parse([]byte(`{"name":"lan","ipam":{"host":"10.0.0.11","netserviceEndpoint":["http://a:1","://"],"probe":"no"}}`), "")
	want := Conflist{Name: "lan", Host: netip.MustParseAddr("10.0.0.11"), Replicas: urls("http://a:1")}
	if diff := cmp.Diff(want, got, compare); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), "netserviceEndpoint[1]") || !strings.Contains(err.Error(), "ipam.probe") {
		t.Errorf("the error names not both fields: %v", err)
	}
}

func TestNoObject(t *testing.T) {
	for name, text := range map[string]string{"cut off": `{"name":`, "a list": `[]`, "a string": `"x"`, "two": `{}{}`, "zeros": "\x00\x00"} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(text), ""); !errors.Is(err, ErrNoObject) {
				t.Errorf("Parse: %v", err)
			}
			if _, err := ParseNode([]byte(text)); !errors.Is(err, ErrNoObject) {
				t.Errorf("ParseNode: %v", err)
			}
		})
	}
}

func TestVLANOfName(t *testing.T) {
	for name, want := range map[string]int{
		"eth0.100": 100, "bond0.7.8": 8, "eth0": 0, "eth0.": 0, "eth0.0": 0, "eth0.4095": 0, "eth0.x": 0, ".5": 0, "": 0, "a.-1": 0,
	} {
		if got := VLANOfName(name); got != want {
			t.Errorf("VLANOfName(%q) = %d, want %d", name, got, want)
		}
	}
}

// FuzzParse has damaged configurations: nothing panics, and what a list has is complete.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"name":"lan","ipam":{"type":"bcsnet-ipam","routes":[{"dst":"0.0.0.0/0"}]}}`), "IP=10.0.0.1;IgnoreUnknown=1")
	f.Add([]byte(`{"cni.dev/valid-attachments":[{"containerID":"a","ifname":"b"}],"vlan":7}`), "")
	f.Fuzz(func(t *testing.T, text []byte, args string) {
		c, err := Parse(text, args)
		for _, a := range c.Valid {
			if a.ContainerID == "" || a.IfName == "" {
				t.Errorf("%q: attachment %+v, %v", text, a, err)
			}
		}
		for _, r := range c.Routes {
			if !r.Dst.IsValid() {
				t.Errorf("%q: route %+v, %v", text, r, err)
			}
		}
		_, _ = ParseNode(text)
	})
}

// The length that a wish is written with goes to the allocator, which knows the pool's.
func TestWishKeepsLengths(t *testing.T) {
	c, err := Parse([]byte(`{"runtimeConfig":{"ips":["10.0.0.5/24"," 2001:db8::5 "]}}`), "")
	if got, want := c.Wish.IPAddr(), "10.0.0.5/24,2001:db8::5"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
