package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
	"github.com/bcsnet/bcsnet/pkg/ipam/lease"
	"github.com/bcsnet/bcsnet/pkg/store"
)

// ErrDamaged says that a file is not a backup, or not all of one.
var ErrDamaged = errors.New("it is not a complete backup")

// NewerError says that a later release wrote the file.
type NewerError struct{ Format int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("a later release wrote it: format %d, and this release reads %d", e.Format, Format)
}

// reader reads a backup into rows.
type reader struct {
	importer.Rows

	counts  Counts
	unknown map[string]int // kinds of a later release
	fields  int            // addresses with fields of a later release
	number  int            // of the line
}

// Read reads a backup. It checks all of it before it returns anything.
func Read(from io.Reader) (importer.Rows, error) {
	r := &reader{
		Rows:    importer.Rows{System: "backup", Stored: map[string]*unstructured.Unstructured{}},
		unknown: map[string]int{},
	}
	if err := r.read(from); err != nil {
		return importer.Rows{}, err
	}
	slices.SortFunc(r.Addresses, func(a, b importer.Address) int { return a.Compare(b.Addr) })
	for i, a := range r.Addresses[min(1, len(r.Addresses)):] {
		if a.Addr == r.Addresses[i].Addr {
			return importer.Rows{}, fmt.Errorf("address %s is in it twice: %w", a.Addr, ErrDamaged)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.unknown)) {
		r.Left = append(r.Left, importer.Remark{Object: humanize.Plural(r.unknown[kind], "object") + " of kind " + kind,
			Cause: "this release does not know the kind"})
	}
	if r.fields > 0 {
		r.Left = append(r.Left, importer.Remark{Object: humanize.Plural(r.fields, "address"),
			Cause: "fields of a later release are left out"})
	}
	return r.Rows, nil
}

func (r *reader) damaged(format string, args ...any) error {
	return fmt.Errorf("line %d: %s: %w", r.number, fmt.Sprintf(format, args...), ErrDamaged)
}

func (r *reader) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	sum := sha256.New()
	for lines.Scan() {
		r.number++
		text := lines.Bytes()
		var head struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(text, &head); err != nil {
			return r.damaged("%v", err)
		}
		switch {
		case r.number == 1:
			if err := r.begin(text); err != nil {
				return err
			}
		case head.Kind == kindEnd:
			return r.end(text, hex.EncodeToString(sum.Sum(nil)), lines)
		default:
			if err := r.object(head.Kind, text); err != nil {
				return err
			}
		}
		sum.Write(text)
		sum.Write([]byte{'\n'})
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	r.number++
	return r.damaged("the last line is missing")
}

func (r *reader) begin(text []byte) error {
	var b begin
	if err := json.Unmarshal(text, &b); err != nil || b.Kind != kindBegin || b.Format < 1 {
		return r.damaged("it does not begin as a backup does")
	}
	if b.Format > Format {
		return &NewerError{b.Format}
	}
	return nil
}

// end compares the last line with what was read.
func (r *reader) end(text []byte, sum string, rest *bufio.Scanner) error {
	var e end
	if err := json.Unmarshal(text, &e); err != nil {
		return r.damaged("%v", err)
	}
	counts := Counts{e.Pools, e.Claims, e.Addresses}
	switch {
	case counts != r.counts:
		return r.damaged("%d pools, %d claims and %d addresses are said to be in it, and there are %d, %d and %d",
			e.Pools, e.Claims, e.Addresses, r.counts.Pools, r.counts.Claims, r.counts.Addresses)
	case e.SHA256 != sum:
		return r.damaged("somebody or something changed it after it was written")
	case rest.Scan():
		return r.damaged("it goes on behind its end")
	}
	return nil
}

// object reads one object.
func (r *reader) object(kind string, text []byte) error {
	if !r.counts.add(kind) {
		r.unknown[kind]++
		return nil
	}
	if kind == kindAddress {
		return r.address(text)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(bytes.Clone(text)); err != nil {
		return r.damaged("%v", err)
	}
	if kind == kindPool {
		var p v1.BCSNetPool
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &p); err != nil {
			return r.damaged("%v", err)
		}
		r.Pools, r.Stored[importer.PoolObject(p.Name)] = append(r.Pools, p), o
		return nil
	}
	var c v1.BCSNetIPClaim
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c); err != nil {
		return r.damaged("%v", err)
	}
	row := importer.Claim{Namespace: c.Namespace, Name: c.Name, Made: &c}
	row.Object = importer.ClaimObject(row.Key())
	r.Claims, r.Stored[row.Object] = append(r.Claims, row), o
	return nil
}

// address reads one address, without an object of its own: there may be many.
func (r *reader) address(text []byte) error {
	var o v1.BCSNetIP
	unknown, err := kjson.UnmarshalStrict(text, &o)
	if err != nil {
		return r.damaged("%v", err)
	}
	if len(unknown) > 0 {
		r.fields++
	}
	o.ResourceVersion = "0" // it has none here
	l, err := store.Lease(&o, false)
	if err != nil {
		return r.damaged("%v", err)
	}
	l.HeldFinalizer = l.State != lease.Available
	r.Addresses = append(r.Addresses, importer.Address{
		Addr: l.Addr, Object: "address " + l.Addr.String(), Lease: &l, Claim: l.Claim, Updated: l.Updated,
	})
	return nil
}
