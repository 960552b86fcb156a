package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"sigs.k8s.io/yaml"

	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
)

// codeBlock is a fenced block of a page.
type codeBlock struct{ language, text string }

func codeBlocks(page string) (all []codeBlock, err error) {
	source, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	err = ast.Walk(goldmark.DefaultParser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if block, is := n.(*ast.FencedCodeBlock); is && entering {
			all = append(all, codeBlock{string(block.Language(source)), string(block.Lines().Value(source))})
		}
		return ast.WalkContinue, nil
	})
	return all, err
}

// conflistsOf returns the network configurations and the config.json of a page. A NetworkAttachmentDefinition has one
// in a string.
func conflistsOf(t *testing.T, page string) (lists []*libcni.NetworkConfigList, node netconf.Node) {
	t.Helper()
	blocks, err := codeBlocks(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		content := block.text
		var object struct {
			Plugins  json.RawMessage `json:"plugins"`
			Replicas json.RawMessage `json:"replicas"`
			Spec     struct {
				Config string `json:"config"`
			} `json:"spec"`
		}
		switch block.language {
		case "json", "yaml":
			if err := yaml.Unmarshal([]byte(content), &object); err != nil {
				t.Errorf("%v in\n%s", err, content)
			}
		default:
			continue
		}
		if object.Spec.Config != "" {
			content = object.Spec.Config
		}
		switch {
		case object.Replicas != nil:
			if node, err = netconf.ParseNode([]byte(content)); err != nil {
				t.Errorf("%v in\n%s", err, content)
			}
		case object.Plugins != nil || object.Spec.Config != "":
			list, err := libcni.NetworkConfFromBytes([]byte(content))
			if err != nil {
				t.Errorf("%v in\n%s", err, content)
				continue
			}
			lists = append(lists, list)
		}
	}
	return lists, node
}

// TestConflists: the network configurations of the pages are such that CNI's library and our plugin take them, and say
// all that the plugin needs, with the page's config.json or, where one names the allocator itself, without.
func TestConflists(t *testing.T) {
	for page, want := range map[string]int{"cni.md": 7, "cni-link.md": 1} {
		for _, name := range []string{page, "zh/" + page} {
			t.Run(name, func(t *testing.T) {
				lists, node := conflistsOf(t, filepath.Join("../../docs", name))
				if len(lists) != want {
					t.Errorf("%d network configurations, want %d", len(lists), want)
				}
				for _, list := range lists {
					checkConflist(t, list, node, page == "cni.md")
				}
			})
		}
	}
}

// checkConflist fails unless our plugins can be called by a network configuration.
func checkConflist(t *testing.T, list *libcni.NetworkConfigList, node netconf.Node, whole bool) {
	t.Helper()
	ours := 0
	for i, plugin := range list.Plugins {
		name := list.Name + ", " + plugin.Network.Type
		c, err := netconf.Parse(plugin.Bytes, "")
		if err != nil || len(c.Unknown) > 0 {
			t.Errorf("%s: %v, unknown: %v", name, err, c.Unknown)
		}
		switch {
		case plugin.Network.IPAM.Type == netconf.Type:
			ours++
			if len(c.Replicas) > 0 {
				node = netconf.Node{}
			}
			if err := netconf.Merge(c, node).Complete(); err != nil && whole {
				t.Errorf("%s: %v", name, err)
			}
		case plugin.Network.Type == "bcsnet-announce":
			if i != len(list.Plugins)-1 || i == 0 {
				t.Errorf("%s is not after the main plugin", name)
			}
		default:
			t.Errorf("%s: nobody asks bcsnet for its addresses", name)
		}
	}
	if ours != 1 || strings.TrimSpace(list.Name) == "" {
		t.Errorf("%q: %d plugins have their addresses of bcsnet", list.Name, ours)
	}
}
