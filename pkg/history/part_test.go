package history

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func read(t *testing.T, p *Part) (all []Record) {
	t.Helper()
	data, n := p.Data()
	if err := Read(data, func(r Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if n != len(all) {
		t.Errorf("the part counts %d records and has %d", n, len(all))
	}
	return all
}

// What goes into parts comes out of them, in order, however many parts it takes; no part is larger than its object may
// be.
func TestParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all []Record
	for i := range 9000 {
		all = append(all, churned(random, i))
	}
	all[17].Reason = strings.Repeat("“\u2028<", 40000) // none is so long: a part takes it in all the same
	all[18].Changes = []FieldChange{{"gateway", "10.0.0.1", "10.0.0.2"}}
	var got []Record
	part, parts := &Part{}, 1
	for left := all; len(left) > 0; {
		if part.Full() {
			got, part, parts = append(got, read(t, part)...), &Part{}, parts+1
		}
		again, err := NewPart(part.data) // another replica goes on with it
		if err != nil {
			t.Fatal(err)
		}
		next, n, err := again.Add(left[:min(len(left), 700)])
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			t.Fatal("no record fits")
		}
		if part, left = next, left[n:]; len(part.data) > MaxData {
			t.Errorf("a part has %d bytes", len(part.data))
		}
	}
	got = append(got, read(t, part)...)
	if diff := cmp.Diff(all, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if parts < 2 {
		t.Errorf("%d parts", parts)
	}
}

func TestDamagedData(t *testing.T) {
	if err := Read([]byte("no gzip"), func(Record) error { return nil }); err == nil {
		t.Error("what is no gzip is read")
	}
	if _, err := NewPart([]byte("no gzip")); err == nil {
		t.Error("what is no gzip is gone on with")
	}
}

func TestFrom(t *testing.T) {
	var names []string
	for _, minute := range []int{0, 10, 20, 30} {
		names = append(names, Name(at(minute*60), "a1"))
	}
	if !slices.IsSorted(names) {
		t.Errorf("names do not sort by time: %q", names)
	}
	for name, tc := range map[string]struct {
		since int
		want  int // how many parts, the newest
	}{
		"before all":                      {-600, 4},
		"in the first":                    {300, 4},
		"begins with a part":              {600, 4}, // the one before may overlap
		"in a later one":                  {900, 3},
		"after the beginning of the last": {3600, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := From(names, at(tc.since)); len(got) != tc.want {
				t.Errorf("%q, want %d", got, tc.want)
			}
		})
	}
	if got := From(nil, start); len(got) != 0 {
		t.Errorf("%q of nothing", got)
	}
}

// churned is a holding as a busy cluster has them: pods of Deployments on 512 hosts.
func churned(random *rand.Rand, i int) Record {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	suffix := func(n int) string {
		b := make([]byte, n)
		for j := range b {
			b[j] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	n := random.IntN(65536)
	return Record{
		Time: at(i / 10), Since: at(i/10 - random.IntN(86400)), What: WhatGaveUp,
		IP:   netip.AddrFrom4([4]byte{10, 20, byte(n >> 8), byte(n)}),
		Host: netip.AddrFrom4([4]byte{10, 0, byte(n % 2), byte(random.IntN(256))}), Pool: fmt.Sprint("pool-", n%16),
		Namespace: fmt.Sprint("team-", random.IntN(64)), Pod: fmt.Sprintf("web-%d-%s-%s", random.IntN(256), suffix(9), suffix(5)),
	}
}

// BenchmarkParts packs ten changes a second, written every ten seconds, for an hour: bytes of a record as it is stored,
// and bytes written for each record, as a part is written again as it grows.
func BenchmarkParts(b *testing.B) {
	for b.Loop() {
		random := rand.New(rand.NewPCG(1, 2))
		var stored, written, parts, writes, i int
		part := &Part{}
		for range 360 {
			var records []Record
			for range 100 {
				records = append(records, churned(random, i))
				i++
			}
			for len(records) > 0 {
				if part.Full() {
					stored, parts, part = stored+len(part.data), parts+1, &Part{}
				}
				next, n, err := part.Add(records)
				if err != nil {
					b.Fatal(err)
				}
				part, records = next, records[n:]
				writes, written = writes+1, written+len(part.data)*4/3
			}
		}
		stored += len(part.data)
		b.ReportMetric(float64(stored)*4/3/float64(i), "stored-B/record")
		b.ReportMetric(float64(written)/float64(i), "written-B/record")
		b.ReportMetric(float64(parts+1), "objects/h")
		b.ReportMetric(float64(writes)/3600, "writes/s")
	}
}
