package httpapi

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/bcsnet/bcsnet/pkg/ipam"
	"github.com/bcsnet/bcsnet/test/generated"
)

var update = flag.Bool("update", false, "write the generated parts of the documents")

const (
	begin = "    # Generated from ipam.ReasonTable by go generate ./pkg/httpapi: begin\n"
	end   = "    # Generated: end\n"
)

// The table of reasons stands in two documents.
func TestReasonsAreDocumented(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "reference", "reasons.md")
	for file, generate := range map[string]func(old string) (string, error){
		page:           func(string) (string, error) { return reasonsPage(), nil },
		"openapi.yaml": reasonsInOpenAPI,
	} {
		generated.UpToDate(t, *update, file, "go generate ./pkg/httpapi", generate)
	}
}

func reasonsPage() string {
	var b bytes.Buffer
	b.WriteString(`# Reasons

<!-- Generated from ipam.ReasonTable by go generate ./pkg/httpapi; do not edit. -->

When a request is not done, the envelope's ` + "`reason`" + ` is one of these words. They are stable: programs may decide
on them, while messages are for people. *code* is the envelope's: 1 the request is wrong, 2 it cannot be done.
*HTTP* is the status on the allocator's routes. *again* says whether the same request can succeed later without anybody
changing it.

| reason | code | HTTP | again | meaning |
|---|---|---|---|---|
`)
	for _, i := range ipam.ReasonTable() {
		again := "no"
		if i.Retry {
			again = "yes"
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %s | %s |\n", i.Reason, i.Code, statusesOf(i.Reason), again, i.Meaning)
	}
	return b.String()
}

func statusesOf(r ipam.Reason) string {
	status := fmt.Sprint(envelopeCodec{}.status(ipam.Refuse(r, "")))
	switch r {
	case ipam.ReasonBadRequest:
		return status + "; 400, 403, 405, 408, 413, 415"
	case ipam.ReasonNotFound:
		return status + "; 404 for a path"
	default:
		return status
	}
}

func reasonsInOpenAPI(old string) (string, error) {
	var b bytes.Buffer
	b.WriteString(
		"    Reason:\n      type: string\n      description: |\n        Why it was not done; absent when it was.\n\n")
	for _, i := range ipam.ReasonTable() {
		fmt.Fprintf(&b, "        - `%s`: %s\n", i.Reason, i.Meaning)
	}
	b.WriteString("      enum:\n")
	for _, i := range ipam.ReasonTable() {
		fmt.Fprintf(&b, "      - %s\n", i.Reason)
	}
	return generated.Between(old, begin, end, b.String())
}
