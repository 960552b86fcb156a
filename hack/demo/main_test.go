package main

import (
	"bytes"
	"strings"
	"testing"
)

// The tour runs to its end, and every step of it comes out as announced.
func TestDemo(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "✔ every step came out as told") {
		t.Errorf("it ended with:\n%s", &out)
	}
}
