package replica_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bcsnet/bcsnet/pkg/replica"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	for holder, want := range map[string]replica.Identity{
		"":     {},
		"node": {Name: "node"},
		"node-1_4b8f1c4e-0a8f-4d8c-9f6e-0f0d1d0c9d55": {Name: "node-1", Life: "4b8f1c4e-0a8f-4d8c-9f6e-0f0d1d0c9d55"},
		"node_x_http://10.0.0.1:8090":                 {Name: "node", Life: "x", URL: "http://10.0.0.1:8090"},
		"node_x_https://a_b.example":                  {Name: "node", Life: "x", URL: "https://a_b.example"},
		"node_x_http://[fd00::1]:8090":                {Name: "node", Life: "x", URL: "http://[fd00::1]:8090"},
		"node_x_http://10.0.0.1/path":                 {Name: "node", Life: "x"},
		"node_x_nonsense":                             {Name: "node", Life: "x"},
	} {
		if got := replica.Parse(holder); got != want {
			t.Errorf("%q is %+v, want %+v", holder, got, want)
		}
	}
	a, b := replica.New("node_1", "http://10.0.0.1:8090"), replica.New("", "")
	if a.Name != "node-1" || b.Name != "unnamed" || a.Life == b.Life || len(validation.IsDNS1123Subdomain(a.Life)) > 0 {
		t.Errorf("new identities: %+v, %+v", a, b)
	}
	for _, i := range []replica.Identity{a, b} {
		if got := replica.Parse(i.Holder()); got != i || !strings.HasPrefix(i.Holder(), i.ID()) {
			t.Errorf("%+v comes back as %+v", i, got)
		}
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for s, loopback := range map[string]bool{
		"http://10.0.0.1:8090": false, "https://controller.example": false, "http://[fd00::1]:8090": false,
		"http://127.0.0.1:1": true, "http://localhost:8090": true, "https://[::1]:8090": true, "http://127.8.0.1": true,
	} {
		u, err := replica.ParseURL(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
		} else if replica.Loopback(u) != loopback {
			t.Errorf("%s: loopback is %t", s, !loopback)
		}
	}
	for _, s := range []string{
		"", "10.0.0.1:8090", "ftp://10.0.0.1", "http://", "http://:8090", "http://10.0.0.1:", "http://10.0.0.1:80a", "http://10.0.0.1/",
		"http://10.0.0.1/x", "http://10.0.0.1?x", "http://10.0.0.1#x", "http://u@10.0.0.1", "http://u:p@10.0.0.1", "HTTP://10.0.0.1",
		"http://0.0.0.0:8090", "http://[::]:8090", "http://10.0.0.1 ", "http://a b",
	} {
		if u, err := replica.ParseURL(s); err == nil {
			t.Errorf("%q is taken as %v", s, u)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("node_x_http://10.0.0.1:8090")
	f.Add("__")
	f.Fuzz(func(t *testing.T, holder string) {
		i := replica.Parse(holder)
		if i.Life != "" && replica.Parse(i.Holder()) != i {
			t.Errorf("%q: %+v comes back as %+v", holder, i, replica.Parse(i.Holder()))
		}
	})
}
