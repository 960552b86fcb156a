package replica_test

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/replica"
)

func newKey(t *testing.T) replica.Key {
	t.Helper()
	k, err := replica.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Two replicas find the same secret, each from its own key and the public half of the other, and a third one another.
func TestShare(t *testing.T) {
	t.Parallel()
	a, b, c := newKey(t), newKey(t), newKey(t)
	share := func(k replica.Key, public string) []byte {
		t.Helper()
		secret, err := k.Share(public)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	ab := share(a, b.Public())
	if len(ab) != 32 || !bytes.Equal(ab, share(b, a.Public())) {
		t.Errorf("%x", ab)
	}
	for name, other := range map[string][]byte{
		"a and c": share(a, c.Public()), "b and c": share(b, c.Public()), "a and a": share(a, a.Public()),
	} {
		if bytes.Equal(ab, other) {
			t.Errorf("%s share the secret of a and b", name)
		}
	}
}

// What is no key is refused; nor may one be taken that gives everybody the same secret.
func TestWrongKeys(t *testing.T) {
	t.Parallel()
	k := newKey(t)
	for _, public := range []string{
		"", "x", "%", base64.RawStdEncoding.EncodeToString(make([]byte, 31)), base64.RawStdEncoding.EncodeToString(make([]byte, 32)),
	} {
		if secret, err := k.Share(public); err == nil {
			t.Errorf("%q gives %x", public, secret)
		}
	}
}
