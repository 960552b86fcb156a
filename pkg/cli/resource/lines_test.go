package resource

import (
	"strings"
	"testing"
)

// FuzzLines: what is typed into standard input as hosts or addresses is read the same when it is written again, each
// once.
func FuzzLines(f *testing.F) {
	for _, text := range []string{
		"10.0.0.11\n10.0.0.12 # rack 2\n\n", "# nothing", "2001:db8::9\r\n10.0.0.9", "bcsnetip.networkextension.bkbcs.tencent.com/10.0.0.9", "node-1", "\x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := ReadLines(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, l := range lines {
			if l == "" || strings.TrimSpace(l) != l || strings.ContainsAny(l, "#\n") {
				t.Errorf("line %q of %q", l, text)
			}
		}
		hosts, err := ParseHosts(lines)
		if err != nil {
			return
		}
		var words []string
		for _, h := range hosts {
			words = append(words, h.String())
		}
		again, err := ParseAddresses(words)
		if err != nil || len(again) != len(hosts) {
			t.Errorf("%v come back as %v, %v", hosts, again, err)
		}
		if _, err := ParseEntries(words); err != nil {
			t.Errorf("each is named once: %v", err)
		}
	})
}
