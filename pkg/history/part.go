package history

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	// MaxData bounds the compressed data of a part, in bytes: as base64 it fills the field of its object.
	MaxData = 96 << 10
	// fullData is the size from which a part takes no more records.
	fullData = 64 << 10
	// maxStep bounds the records that go into a part at once.
	maxStep = 512
	// maxLine bounds one record as it is read.
	maxLine = 1 << 20
)

// Part collects the records of one BCSNetHistory. The zero Part is empty.
type Part struct {
	lines   []byte
	records int
	data    []byte
}

// NewPart returns a part with the data of an object, to go on with it.
func NewPart(data []byte) (*Part, error) {
	p := &Part{data: data}
	if len(data) == 0 {
		return p, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if p.lines, err = io.ReadAll(io.LimitReader(r, maxUnpacked)); err != nil {
		return nil, err
	}
	p.records = bytes.Count(p.lines, []byte{'\n'})
	return p, nil
}

// maxUnpacked bounds what a part is unpacked to, whatever wrote it.
const maxUnpacked = 64 << 20

// Full reports whether the part should take no more records.
func (p *Part) Full() bool { return len(p.data) >= fullData }

// Data returns the compressed records, and how many there are.
func (p *Part) Data() (data []byte, records int) { return p.data, p.records }

// Add returns the part with as many of the records as fit, and how many these are. The part itself stays as it is, so
// that one which cannot be stored is tried again. At least one record fits into an empty part.
func (p *Part) Add(records []Record) (next *Part, n int, err error) {
	next = p
	for n < len(records) && !next.Full() {
		step := min(len(records)-n, maxStep)
		for {
			more, err := next.with(records[n : n+step])
			if err != nil {
				return p, 0, err
			}
			if len(more.data) <= MaxData {
				next, n = more, n+step
				break
			}
			if step == 1 {
				return next, n, nil
			}
			step /= 2
		}
	}
	return next, n, nil
}

func (p *Part) with(records []Record) (*Part, error) {
	next := &Part{lines: slices.Clip(p.lines), records: p.records + len(records)}
	for _, r := range records {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		next.lines = append(append(next.lines, line...), '\n')
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(next.lines); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	next.data = b.Bytes()
	return next, nil
}

// Read calls fn with each record of a part's data, in their order.
func Read(data []byte, fn func(Record) error) error {
	if len(data) == 0 {
		return nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("the data is not gzip: %w", err)
	}
	lines := bufio.NewScanner(io.LimitReader(z, maxUnpacked))
	lines.Buffer(make([]byte, 0, 4096), maxLine)
	for lines.Scan() {
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("a record cannot be read: %w", err)
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return lines.Err()
}

// Name returns the name of a part that begins at a time, written by a replica. Names sort by time.
func Name(begins time.Time, replica string) string {
	return begins.UTC().Format(nameTime) + "-" + replica
}

const nameTime = "20060102-150405.000000000"

// Begins returns the time in the name of a part.
func Begins(name string) (time.Time, error) {
	if len(name) < len(nameTime) {
		return time.Time{}, errors.New("the name of a part of the history begins with its time")
	}
	return time.Parse(nameTime, name[:len(nameTime)])
}

// From returns which of the parts may have records of a time or later: names are in order. A part ends where the next
// one begins, give or take overlap, as two replicas may both believe to lead for a moment.
func From(names []string, since time.Time) []string {
	for i := 1; i < len(names); i++ {
		if begins, err := Begins(names[i]); err == nil && !begins.Before(since.Add(-overlap)) {
			return names[i-1:]
		}
	}
	return names[max(0, len(names)-1):]
}

const overlap = 2 * time.Minute
