package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
)

// readList decodes a BCSNetIPList as it streams in, one item at a time, and returns the list's metadata. Objects whose
// names are not addresses are skipped.
func readList(r io.Reader, fn func(lease.Lease) error) (meta metav1.ListMeta, err error) {
	return readObjects(r, func(object []byte) error {
		o, foreign, err := readObject(object)
		if err != nil {
			return listError(err)
		}
		l, err := Lease(o, foreign)
		if err != nil {
			return nil //nolint:nilerr // the schema refuses such names; an older one may have let them in
		}
		return fn(l)
	})
}

// readObjects splits a list into its objects as it streams in, and returns the list's metadata. An object is valid
// until fn returns.
func readObjects(r io.Reader, fn func(object []byte) error) (meta metav1.ListMeta, err error) {
	d := newDecoder(json.NewDecoder(r))
	if err := expect(d, json.Delim('{')); err != nil {
		return meta, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return meta, listError(err)
		}
		switch key {
		case "metadata":
			_, err = d.decode(&meta)
		case "items":
			p := &pieces{r: io.MultiReader(d.Buffered(), r)}
			if err = readItems(p, fn); err == nil {
				r = io.MultiReader(strings.NewReader("{"), p)
				d = newDecoder(json.NewDecoder(r))
				err = expect(d, json.Delim('{'))
			}
		default:
			var skipped json.RawMessage
			_, err = d.decode(&skipped)
		}
		if err != nil {
			return meta, err
		}
	}
	return meta, expect(d, json.Delim('}'))
}

// readItems reads the items of a list, from the colon after the field's name to the comma after the list, if there is
// one.
func readItems(p *pieces, fn func(object []byte) error) error {
	if err := p.expect(':'); err != nil {
		return err
	}
	if p.peek() == 'n' { // some encoders write an empty list as null
		return errors.Join(p.null(), p.comma())
	}
	if err := p.expect('['); err != nil {
		return err
	}
	for more := p.peek() != ']'; more; more = p.peek() == ',' && p.expect(',') == nil {
		object, err := p.object()
		if err != nil {
			return err
		}
		if err := fn(object); err != nil {
			return err
		}
	}
	if err := p.expect(']'); err != nil {
		return err
	}
	return p.comma()
}

func expect(d decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return listError(err)
	}
	if got != want {
		return outOfPlace(got, want)
	}
	return nil
}

func outOfPlace(got json.Token, want json.Delim) error {
	return fmt.Errorf("%w: the list has %v where %v should be", ErrUnavailable, got, want)
}

func listError(err error) error {
	return fmt.Errorf("%w: the list ended early: %w", ErrUnavailable, err)
}

// formatVersion formats a version as in objects; empty for 0, which stands for none.
func formatVersion(v uint64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatUint(v, 10)
}

func parseVersion(rv string) uint64 {
	v, _ := strconv.ParseUint(rv, 10, 64)
	return v
}

// readVersion parses the output of formatVersion; ok is false for anything else.
func readVersion(s string) (v uint64, ok bool) {
	v = parseVersion(s)
	return v, formatVersion(v) == s
}
