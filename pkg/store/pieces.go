package store

import (
	"bytes"
	"fmt"
	"io"
)

// pieces splits a stream of JSON into its objects without parsing them. Its results are valid until the next call.
type pieces struct {
	r        io.Reader
	buf      []byte
	from, to int // the unconsumed part of buf
	err      error
}

// firstBuffer has room for some tens of leases.
const firstBuffer = 64 << 10

// more reads on, doubling the buffer each time, so that a large object is not scanned again for every few bytes. It
// reports whether anything was read.
func (p *pieces) more() bool {
	have := p.to - p.from
	if len(p.buf) < 2*have || len(p.buf) == 0 {
		p.buf = append(make([]byte, 0, max(firstBuffer, 4*have)), p.buf[p.from:p.to]...)
		p.buf = p.buf[:cap(p.buf)]
	} else {
		copy(p.buf, p.buf[p.from:p.to])
	}
	p.from, p.to = 0, have
	for p.err == nil && p.to-have <= have/2 {
		var n int
		n, p.err = p.r.Read(p.buf[p.to:])
		p.to += n
	}
	return p.to > have
}

// peek returns the next character that is not white space; 0 at the end.
func (p *pieces) peek() byte {
	for {
		for ; p.from < p.to; p.from++ {
			switch c := p.buf[p.from]; c {
			case ' ', '\n', '\t', '\r':
			default:
				return c
			}
		}
		if !p.more() {
			return 0
		}
	}
}

// failed returns the error for an invalid stream.
func (p *pieces) failed(want string) error {
	if p.err != nil && p.from == p.to {
		return listError(p.err)
	}
	return fmt.Errorf("%w: the list has %q where %s should be", ErrUnavailable, p.peek(), want)
}

// expect skips a required character.
func (p *pieces) expect(c byte) error {
	if p.peek() != c {
		return p.failed(fmt.Sprintf("%q", c))
	}
	p.from++
	return nil
}

// comma skips a comma if a name follows, and nothing at the end of the object.
func (p *pieces) comma() error {
	if p.peek() == '}' {
		return nil
	}
	if err := p.expect(','); err != nil {
		return err
	}
	if p.peek() != '"' {
		return p.failed("a name")
	}
	return nil
}

func (p *pieces) null() error {
	for _, c := range []byte("null") {
		if err := p.expect(c); err != nil {
			return err
		}
	}
	return nil
}

// object returns the next complete object of the stream.
func (p *pieces) object() ([]byte, error) {
	if p.peek() != '{' {
		return nil, p.failed("an object")
	}
	for {
		if n := valueLength(p.buf[p.from:p.to]); n > 0 {
			o := p.buf[p.from:][:n]
			p.from += n
			return o, nil
		}
		if !p.more() {
			return nil, listError(p.err)
		}
	}
}

// Read returns the data that was not consumed yet.
func (p *pieces) Read(b []byte) (int, error) {
	if p.from == p.to && !p.more() {
		return 0, p.err
	}
	n := copy(b, p.buf[p.from:p.to])
	p.from += n
	return n, nil
}

var _ io.Reader = (*pieces)(nil)

// valueLength returns the length in bytes of the object or array at the beginning of b; 0 if it does not end in b. It
// only looks for the closing bracket: parsing the value finds any errors inside.
func valueLength(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			n := stringLength(b[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
		}
	}
	return 0
}

// stringLength returns the length in bytes of the string at the beginning of b, including its quotes; 0 if it does not
// end in b.
func stringLength(b []byte) int {
	for i := 1; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		i += n
		escapes := 0
		for b[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}
