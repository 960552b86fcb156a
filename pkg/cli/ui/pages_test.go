package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/history"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

// scene makes pools, addresses and whoever has them. odd is what some of their texts end in.
func (s *site) scene(t *testing.T, odd string) {
	t.Helper()
	blue := pool("blue", "10.1.0.0", 24, 253, 40, 6)
	blue.Spec.Network, blue.Spec.VLAN = "prod", 100
	blue.Spec.Quotas = []v1.NamespaceQuota{{Namespace: "shop", Max: 41}}
	full := pool("edge", "10.3.0.0", 28, 13, 13, 0)
	full.Status.Conditions = append(full.Status.Conditions, metav1.Condition{
		Type: v1.ConditionExhausted, Status: metav1.ConditionTrue, Reason: "NoFreeAddress",
		LastTransitionTime: metav1.Now(),
		Message:            "no free address" + odd,
	})
	objects := []client.Object{
		node("node-1", "10.0.0.11"), node("node-2", "10.0.0.12"),
		blue, full, pool("large", "10.16.0.0", 16, 65533, 300, 0), pool("lab", "10.4.0.0", 22, 1021, 120, 0),
		pool("six", "fd00:0:0:1::", 64, 1<<62, 2, 0),
		aside("10.1.0.200", "blue", "ann", "printers of the lab"+odd), aside("10.1.0.201", "blue", "ann",
			"printers of the lab"+odd),
		held("10.1.0.90", "blue", "10.0.0.99", "shop/lost-0"),
		held("fd00:0:0:1::20", "six", "10.0.0.11", "shop/web-6"),
	}
	for i := range 40 {
		objects = append(objects, held(fmt.Sprintf("10.1.0.%d", 20+i), "blue", fmt.Sprintf("10.0.0.%d", 11+i%2),
			fmt.Sprintf("shop/web-%d", i)))
	}
	for i := range 40 {
		objects = append(objects, held(fmt.Sprintf("10.16.%d.%d", i*5, i+2), "large", "10.0.0.11", fmt.Sprintf("bank/api-%d", i)))
	}
	objects = append(objects, past(t,
		history.Record{What: "gave up", Since: time.Now().Add(-time.Hour), Time: time.Now(),
			IP: netip.MustParseAddr("10.1.0.99"), Pool: "blue",
			Namespace: "shop", Pod: "earlier-0", Host: netip.MustParseAddr("10.0.0.11"), Reason: "rack" + odd},
		history.Record{What: "changed", Time: time.Now(), Pool: "blue", By: "ann" + odd,
			Changes: []history.FieldChange{{Field: "gateway", Old: "10.1.0.254", New: "10.1.0.1"}}},
		history.Record{What: "gap", Since: time.Now().Add(-time.Hour), Time: time.Now(), Reason: "nobody watched"},
	))
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}} // nothing here deletes one
	if err := s.Create(t.Context(), shop); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	kept := held("10.1.0.80", "blue", "10.0.0.12", "shop/db-0")
	kept.Status.Claim = "shop/db"
	s.make(t, append(objects, kept, &v1.BCSNetIPClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"},
		Spec:       v1.BCSNetIPClaimSpec{Replicas: new(int32(1))},
	})...)
}

// past is a part of the history.
func past(t *testing.T, records ...history.Record) *v1.BCSNetHistory {
	t.Helper()
	part, _, err := (&history.Part{}).Add(records)
	if err != nil {
		t.Fatal(err)
	}
	data, n := part.Data()
	now := time.Now()
	return &v1.BCSNetHistory{ObjectMeta: metav1.ObjectMeta{Name: history.Name(now, "test")},
		Since: now.Format(time.RFC3339),
		Until: now.Format(time.RFC3339), Records: int32(n), Data: data}
}

// scenes are the pages of a scene, each with what it says.
func scenes() map[string][]string {
	return map[string][]string{
		"/":              {"blue", "edge", "1 needs attention", "large", "six", "prod", "VLAN 100"},
		"/?find=vlan100": {"blue", "1 needs attention", "1 full"},
		"/?sort=name":    {"blue", "six"},
		"/network/prod":  {"blue", "VLAN 100"},
		"/pool/blue": {"10.1.0.0/24", "shop/web-0", "printers of the lab", "10.1.0.200",
			"Free in a row", "10.0.0.99", "bcsnetctl"},
		"/pool/edge":                  {"NoFreeAddress", "&lt;img src=x"},
		"/pool/large":                 {"one cell is a /28", "?at=10.16.0.0"},
		"/pool/large?at=10.16.0.0/24": {"/ip/10.16.0.2", "bank/api-0"},
		"/pool/six":                   {"fd00:0:0:1::"},
		"/ip/10.1.0.20": {"shop/web-0", "/pool/blue", "bcsnetctl ip release 10.1.0.20",
			"/history/ip/10.1.0.20"},
		"/ip/10.1.0.200":              {"ann", "printers of the lab", "ip unreserve"},
		"/ip/10.1.0.250":              {"free", "blue"},
		"/ip/10.1.0.1":                {"<dd>gateway of pool blue</dd>"},
		"/ip/10.1.0.0":                {"<dd>network address of pool blue</dd>"},
		"/ip/10.1.0.255":              {"<dd>broadcast address of pool blue</dd>"},
		"/ip/192.0.2.1":               {"<dd>not in any pool</dd>"},
		"/host/10.0.0.11":             {"node-1", "shop/web-0", "blue"},
		"/host/node-1":                {"10.0.0.11"},
		"/host/10.0.0.99":             {"no node has this IP", "release-host 10.0.0.99"},
		"/namespace/shop":             {"shop/web-0", "blue", "/claim/shop/db"},
		"/claim/shop/db":              {"10.1.0.80", "db-0", "1 of 1 address", "shop"},
		"/search?q=shop/db":           {"10.1.0.80"},
		"/search?q=02:02:0a:01:00:14": {"shop/web-0"},
		"/why?pod=shop/web-0":         {"10.1.0.20", "which is gone"},
		"/search?q=web-1":             {"shop/web-1"},
		"/search?q=lost":              {"10.1.0.90"},
		"/problems":                   {"10.1.0.90"},
		"/history/host/10.0.0.11":     {"shop/web-0", "earlier-0", "rack &lt;img", "nobody watched"},
		"/history/host/node-1":        {"shop/web-0", "earlier-0"},
		"/history/namespace/shop":     {"shop/web-0", "earlier-0", "10.1.0.99"},
		"/history/ip/10.1.0.99":       {"earlier-0", "rack &lt;img", "<td>released</td>"},
		"/history/ip/10.1.0.20":       {"shop/web-0", "now"},
		"/search?q=10.0.0.11":         {"Host", "node-1", "shop/web-0"},
		"/search?q=10.0.0.99":         {"Host", "release-host 10.0.0.99"},
		"/search?q=10.1.0.20":         {"Address", "shop/web-0"},
		"/history/pool/blue":          {"gateway", "10.1.0.254", "ann &lt;img", "earlier-0"},
	}
}

// TestPages: every page says what there is, in both languages, and nothing of what fields hold becomes markup.
func TestPages(t *testing.T) {
	s := entered(t)
	s.scene(t, " "+hostile)
	for path, want := range scenes() {
		t.Run(path, func(t *testing.T) {
			status, text := s.get(t, s.viewer, path)
			if status != http.StatusOK {
				t.Fatalf("%d: %s", status, text)
			}
			for _, one := range want {
				found := false
				for alternative := range strings.SplitSeq(one, "|") {
					found = found || strings.Contains(text, alternative)
				}
				if !found {
					t.Errorf("there is no %q in\n%s", one, text)
				}
			}
			for _, bad := range []string{"<img src=x", "\x1b", "\u202e", "\u200b", "style=", "onclick", "<nil>", "%!"} {
				if strings.Contains(text, bad) {
					t.Errorf("there is %q in\n%s", bad, text)
				}
			}
			if _, text := s.get(t, s.viewer, path, func(r *http.Request) {
				r.Header.Set("Accept-Language",
					"zh-CN,en;q=0.5")
			}); !strings.Contains(text, `<html lang="zh">`) || !strings.Contains(text, "地址池") {
				t.Errorf("in Chinese: %s", text)
			}
		})
	}
}

// TestMissing: what is not there is said, with what to do.
func TestMissing(t *testing.T) {
	s := entered(t)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 0, 0))
	for path, want := range map[string]string{
		"/pool/bleu": "did you mean blue?", "/ip/10.1.0.300": "10.1.0.300", "/host/node-9": "no node node-9",
		"/claim/shop/x": "no claim x", "/network/none": "none", "/nowhere": "no such page",
		"/pool/blue?at=10.9.0.0/24": "10.9.0.0/24",
		"/why?pod=shop/none-0":      "no pod none-0",
	} {
		if status, text := s.get(t, s.viewer, path); status != http.StatusNotFound || !strings.Contains(text, want) {
			t.Errorf("%s: %d, want 404 with %q:\n%s", path, status, want, text)
		}
	}
}

// TestForeignTexts: nothing that an object may hold becomes markup, in any field that the API server takes.
func TestForeignTexts(t *testing.T) {
	s := entered(t)
	p := pool("blue", "10.1.0.0", 24, 253, 1, 0)
	p.Status.Conditions[0].Status, p.Status.Conditions[0].Message = metav1.ConditionFalse, strings.Repeat(hostile, 40)
	vm := held("10.1.0.9", "blue", "10.0.0.11", "/")
	vm.Status.Owner, vm.Status.PodName, vm.Status.PodNamespace, vm.Status.PodUID = hostile, "", "", ""
	s.make(t, p, vm)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "blue.1", Namespace: "default"}, Reason: "Odd", Message: hostile,
		Type: "Warning",
		InvolvedObject: corev1.ObjectReference{APIVersion: v1.GroupVersion.String(), Kind: "BCSNetPool", Name: "blue",
			UID: p.UID},
	}
	s.make(t, event)
	for _, path := range []string{
		"/", "/pool/blue", "/ip/10.1.0.9", "/host/10.0.0.11", "/search?q=%3Cimg%20src%3Dx",
		"/?find=%3Cimg%20src%3Dx%20onerror",
		"/why?pod=%3Cimg%20src%3Dx", "/pool/%3Cimg%20src%3Dx%3E", "/ip/%1b[31m", "/network/%e2%80%ae",
	} {
		_, text := s.get(t, s.viewer, path)
		for _, bad := range []string{"<img src=x", "\x1b", "\u202e", "\u200b"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: there is %q in\n%s", path, bad, text)
			}
		}
	}
}

// TestRights: a page is read with the rights of the kubeconfig, and says what these do not allow. When they are taken
// away while it is open, the next look says so.
func TestRights(t *testing.T) {
	if err := manifests(); err != nil {
		t.Fatal(err)
	}
	cfg, err := cluster.ServiceAccountConfig(t.Context(), "default", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfigFor(cfg, path); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, path)
	s.get(t, s.viewer, Link(s.server.Token(), "/"))
	if status, text := s.get(t, s.viewer, "/"); status != http.StatusForbidden || !strings.Contains(text,
		"bcsnet-viewer") {
		t.Errorf("%d: %s", status, text)
	}
	kubectl := func(args ...string) {
		t.Helper()
		if out, err := cluster.Kubectl(context.Background(), args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	kubectl("create", "clusterrolebinding", "nobody", "--clusterrole=bcsnet-viewer", "--serviceaccount=default:nobody")
	controlplane.Eventually(t, func() error {
		if status, text := s.get(t, s.viewer, "/"); status != http.StatusOK {
			return fmt.Errorf("%d: %s", status, text)
		}
		return nil
	})
	events := s.follow(t, "page=/&have=")
	events.until(t, "the list", func(m sent) bool { return m.On })
	kubectl("delete", "clusterrolebinding", "nobody")
	controlplane.Eventually(t, func() error {
		if status, _ := s.get(t, s.viewer, "/"); status != http.StatusForbidden {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 0, 0))
	events.until(t, "that it may be read no more", func(m sent) bool {
		return !m.On && strings.Contains(m.Problem, "Forbidden")
	})
}

// TestManyPools: ten thousand pools are pages of a few hundred, and a name is found.
func TestManyPools(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes many pools")
	}
	s := entered(t)
	const many = 10_000
	for i := range many {
		p := pool(fmt.Sprintf("p-%05d", i), fmt.Sprintf("10.%d.%d.0", 32+i/250, i%250), 24, 253, int64(i%253), 0)
		if err := s.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := s.DeleteAllOf(t.Context(), &v1.BCSNetPool{}); err != nil {
			t.Log(err)
		}
	})
	status, text := s.get(t, s.viewer, "/")
	if status != http.StatusOK || !strings.Contains(text, "10000") || !strings.Contains(text,
		"Page 1 of 50") || len(text) > 200<<10 {
		t.Errorf("%d, %d bytes: %.2000s", status, len(text), text)
	}
	if _, text := s.get(t, s.viewer, "/?find=p-09999"); !strings.Contains(text,
		`/pool/p-09999"`) || strings.Contains(text, `p-09998"`) {
		t.Errorf("p-09999 is not found: %.2000s", text)
	}
}
