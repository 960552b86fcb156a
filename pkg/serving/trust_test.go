package serving

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"time"
)

func mustTrust(t *testing.T, now time.Time) trust {
	t.Helper()
	made, err := newTrust(now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// When a CA follows another one.
func TestRotate(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	step := func(from trust, at time.Time, asked, published, changed bool) trust {
		t.Helper()
		to, did, err := from.rotate(at, asked, published)
		if err != nil || did != changed {
			t.Fatalf("at %s: changed is %t: %v", at, did, err)
		}
		return to
	}
	begun := mustTrust(t, start)
	step(begun, start.Add(8*365*24*time.Hour), false, true, false)
	asked := step(begun, start, true, true, true)
	if asked.next == nil || !asked.nextFrom.IsZero() || !asked.signs.cert.Equal(begun.signs.cert) {
		t.Error("the new CA is not there alone, beside the one that signs")
	}
	step(asked, start.Add(48*time.Hour), false, false, false) // nobody has published it
	published := step(asked, start.Add(48*time.Hour), true, true, true)
	if want := start.Add(49 * time.Hour); !published.nextFrom.Equal(want) {
		t.Errorf("it signs from %s", published.nextFrom)
	}
	step(published, start.Add(49*time.Hour-time.Second), true, true, false)
	over := step(published, start.Add(49*time.Hour), false, true, true)
	if !over.signs.cert.Equal(asked.next.cert) || over.next != nil || !over.has(begun.signs.cert) {
		t.Error("the new CA does not sign, or the old one is forgotten")
	}
	step(over, start.Add(49*time.Hour+leafLife), false, true, false)
	last := step(over, start.Add(49*time.Hour+leafLife+time.Second), false, true, true)
	if last.has(begun.signs.cert) {
		t.Error("the old CA is not forgotten")
	}
	due := step(begun, begun.signs.cert.NotAfter.Add(-authorityRenew+time.Second), false, true, true)
	if due.next == nil || !due.nextFrom.IsZero() {
		t.Error("none is made in time")
	}
	ended := step(begun, begun.signs.cert.NotAfter.Add(time.Second), false, true, true)
	if ended.signs.cert.Equal(begun.signs.cert) {
		t.Error("one that has ended signs on")
	}
}

// What is written is read as it was, and what is damaged is said.
func TestTrustIsStored(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := mustTrust(t, now)
	b, _, err := a.rotate(now, true, false)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := b.rotate(now, false, true)
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := c.rotate(now.Add(2*time.Hour), false, true)
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := d.rotate(now.Add(2*time.Hour), true, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, stored := range map[string]trust{"one": a, "two": b, "published": c, "after": d, "three": e} {
		data, err := stored.encode()
		if err != nil {
			t.Fatal(err)
		}
		read, err := parseTrust(data)
		if err != nil || !bytes.Equal(read.bundle(), stored.bundle()) ||
			!read.nextFrom.Equal(stored.nextFrom.Truncate(time.Second)) ||
			!read.oldUntil.Equal(stored.oldUntil.Truncate(time.Second)) {
			t.Errorf("%s: %v", name, err)
		}
		for key := range data {
			damaged := maps.Clone(data)
			damaged[key] = []byte("-----BEGIN nothing")
			if _, err := parseTrust(damaged); err == nil || !strings.Contains(err.Error(), key) {
				t.Errorf("%s: a damaged %s: %v", name, key, err)
			}
		}
	}
	other, err := mustTrust(t, now).encode()
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := a.encode()
	if err != nil {
		t.Fatal(err)
	}
	mixed[keySignsKey] = other[keySignsKey]
	if _, err := parseTrust(mixed); err == nil || !strings.Contains(err.Error(), "does not belong to the certificate") {
		t.Errorf("the key of another CA: %v", err)
	}
}

func FuzzParseTrust(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"), []byte("x"),
		[]byte("2026-01-02T03:04:05Z"))
	f.Fuzz(func(t *testing.T, certificate, key, at []byte) {
		if _, err := parseTrust(map[string][]byte{
			keySigns: certificate, keySignsKey: key, keyNext: certificate, keyNextKey: key, keyNextFrom: at,
			keyOld:      certificate,
			keyOldUntil: at,
		}); err == nil {
			t.Error("a CA was found by chance")
		}
	})
}
