// Package generated holds what is made from code against that code: the test that writes a page is the one that finds
// it out of date.
package generated

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// UpToDate checks that a file is what is made of it, or writes it where update is true. produce gets what the file
// holds, nothing for one that does not exist yet; command is what makes the file.
func UpToDate(t *testing.T, update bool, file, command string, produce func(old string) (string, error)) {
	t.Helper()
	old, err := os.ReadFile(file)
	if err != nil && (!update || !os.IsNotExist(err)) {
		t.Fatal(err)
	}
	want, err := produce(string(old))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(old)); diff != "" {
		t.Errorf("%s is out of date: run %s (-want +got)\n%s", file, command, diff)
	}
}

// Between puts a part between two marks of a text, which stay.
func Between(old, begin, end, part string) (string, error) {
	head, rest, ok := strings.Cut(old, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", errors.New("the marks of the generated part are missing")
	}
	return head + begin + part + end + tail, nil
}
