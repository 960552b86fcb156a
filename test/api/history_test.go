package api

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/bcsnet/bcsnet/api/v1"
)

// A part of the history only grows, and is bounded.
func TestHistoryOnlyGrows(t *testing.T) {
	c := connect(t)
	part := func(change func(*v1.BCSNetHistory)) *v1.BCSNetHistory {
		o := &v1.BCSNetHistory{Since: "2026-05-04T03:02:01Z", Until: "2026-05-04T03:02:01Z", Records: 2, Data: []byte("two")}
		o.Name = "20260504-030201.000000000-a"
		if change != nil {
			change(o)
		}
		return o
	}
	for name, tc := range map[string]struct {
		change func(*v1.BCSNetHistory)
		want   []string
	}{
		"no time":      {func(o *v1.BCSNetHistory) { o.Since = "" }, []string{"since: Invalid value: \"\": since in body should be at least 1 chars long"}},
		"too large":    {func(o *v1.BCSNetHistory) { o.Data = bytes.Repeat([]byte("a"), 98305) }, []string{"data: Too long: may not be more than 131072 bytes", unchecked}},
		"fewer than 0": {func(o *v1.BCSNetHistory) { o.Records = -1 }, []string{"records: Invalid value: -1: records in body should be greater than or equal to 0"}},
		"no version":   {func(o *v1.BCSNetHistory) { o.Version = strings.Repeat("1", 21) }, []string{"version: Too long: may not be more than 20 bytes", unchecked}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := compare(t, tc.want, c.Create(t.Context(), part(tc.change))); diff != "" {
				t.Error(diff)
			}
		})
	}
	o := part(func(o *v1.BCSNetHistory) { o.Data = bytes.Repeat([]byte("a"), 98304) })
	create(t, c, o)
	const grows = "<nil>: Invalid value: a part of the history only grows: its beginning stays, and no record goes"
	for name, tc := range map[string]struct {
		change func(*v1.BCSNetHistory)
		want   []string
	}{
		"a later beginning": {func(o *v1.BCSNetHistory) { o.Since = "2026-05-04T03:02:02Z" }, []string{grows}},
		"fewer records":     {func(o *v1.BCSNetHistory) { o.Records = 1 }, []string{grows}},
		"more records":      {func(o *v1.BCSNetHistory) { o.Records, o.Until = 3, "2026-05-04T03:02:09Z" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			changed := &v1.BCSNetHistory{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), changed); err != nil {
				t.Fatal(err)
			}
			tc.change(changed)
			if diff := compare(t, tc.want, c.Update(t.Context(), changed)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
