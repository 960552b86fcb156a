package doctor_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bcsnet/bcsnet/pkg/doctor"
)

func sameCallers(t *testing.T, name string, want, got doctor.PlainCallers) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// What is written is read again, and what is damaged costs no more than itself.
func TestPlainCallersAreRead(t *testing.T) {
	p := doctor.PlainCallers{Since: old, Kept: now, Hosts: map[netip.Addr]time.Time{addr("10.0.0.1"): old, addr("fd00::1"): now}}
	data := p.Data()
	got, err := doctor.ParsePlainCallers(data)
	if err != nil {
		t.Error(err)
	}
	sameCallers(t, "read", p, got)
	for key, value := range map[string]string{
		"10.0.0.2": "yesterday", "x": now.Format(time.RFC3339), "010.0.0.1": now.Format(time.RFC3339), "": "",
	} {
		damaged := p.Data()
		damaged[key] = value
		got, err := doctor.ParsePlainCallers(damaged)
		if err == nil {
			t.Errorf("%q: %q is no damage", key, value)
		}
		sameCallers(t, key, p, got)
	}
}

// What is added, what is forgotten, and when there is anything to write.
func TestPlainCallersAreAdded(t *testing.T) {
	type hosts = map[netip.Addr]time.Time
	a, b := addr("10.0.0.1"), addr("10.0.0.2")
	hour := now.Add(-time.Hour)
	for name, c := range map[string]struct {
		before  doctor.PlainCallers
		more    hosts
		want    doctor.PlainCallers
		changed bool
	}{
		"the first time":    {doctor.PlainCallers{}, nil, doctor.PlainCallers{Since: now, Kept: now, Hosts: hosts{}}, true},
		"nothing new":       {doctor.PlainCallers{Since: old, Kept: lately, Hosts: hosts{a: hour}}, nil, doctor.PlainCallers{Since: old, Kept: now, Hosts: hosts{a: hour}}, false},
		"nothing for long":  {doctor.PlainCallers{Since: old, Kept: hour, Hosts: hosts{a: hour}}, nil, doctor.PlainCallers{Since: old, Kept: now, Hosts: hosts{a: hour}}, true},
		"another host":      {doctor.PlainCallers{Since: old, Kept: lately, Hosts: hosts{a: hour}}, hosts{b: lately}, doctor.PlainCallers{Since: old, Kept: now, Hosts: hosts{a: hour, b: lately}}, true},
		"the same later":    {doctor.PlainCallers{Since: old, Kept: lately, Hosts: hosts{a: hour}}, hosts{a: lately}, doctor.PlainCallers{Since: old, Kept: now, Hosts: hosts{a: lately}}, true},
		"the same earlier":  {doctor.PlainCallers{Since: old, Kept: lately, Hosts: hosts{a: lately}}, hosts{a: hour}, doctor.PlainCallers{Since: old, Kept: now, Hosts: hosts{a: lately}}, false},
		"one is forgotten":  {doctor.PlainCallers{Since: old, Kept: lately, Hosts: hosts{a: old}}, nil, doctor.PlainCallers{Since: old, Kept: now, Hosts: hosts{}}, true},
		"one of the future": {doctor.PlainCallers{Since: old, Kept: lately, Hosts: hosts{a: now.Add(time.Hour)}}, nil, doctor.PlainCallers{Since: old, Kept: now, Hosts: hosts{}}, true},
		"a gap":             {doctor.PlainCallers{Since: old, Kept: now.Add(-4 * time.Hour), Hosts: hosts{a: hour}}, nil, doctor.PlainCallers{Since: now, Kept: now, Hosts: hosts{a: hour}}, true},
	} {
		got, changed := c.before.Add(c.more, now)
		if changed != c.changed {
			t.Errorf("%s: changed is %t", name, changed)
		}
		sameCallers(t, name, c.want, got)
	}
	many := hosts{}
	for i := range 2 * doctor.MaxPlainCallers {
		many[netip.MustParseAddr(fmt.Sprintf("10.1.%d.%d", i/256, i%256))] = now.Add(-time.Duration(i) * time.Second)
	}
	got, _ := doctor.PlainCallers{}.Add(many, now)
	if _, latest := got.Hosts[addr("10.1.0.0")]; len(got.Hosts) != doctor.MaxPlainCallers || !latest {
		t.Errorf("%d hosts, the latest among them: %t", len(got.Hosts), latest)
	}
}

// Whatever a ConfigMap has, what was read of it is written as it was read.
func FuzzPlainCallers(f *testing.F) {
	f.Add("10.0.0.1", "2026-01-02T03:04:05Z", "since", "2026-01-02T03:04:05Z")
	f.Add("fd00-0000", "x", "kept", "2026-01-02T03:04:05.5+08:00")
	f.Fuzz(func(t *testing.T, key, value, key2, value2 string) {
		p, _ := doctor.ParsePlainCallers(map[string]string{key: value, key2: value2})
		next, _ := p.Add(nil, now)
		again, err := doctor.ParsePlainCallers(next.Data())
		if err != nil {
			t.Fatal(err)
		}
		if _, changed := again.Add(nil, now); changed {
			t.Errorf("%v is written twice", next)
		}
	})
}
