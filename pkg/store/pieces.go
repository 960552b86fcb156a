package store

import (
	"bytes"
	"fmt"
	"io"
)

// pieces cuts a stream of JSON into its objects without looking into them. What it returns is valid until the next
// call.
type pieces struct {
	r        io.Reader
	buf      []byte
	from, to int // what of buf is not yet taken
	err      error
}

// firstBuffer is room for some tens of leases.
const firstBuffer = 64 << 10

// more reads on, as much again as there is, so that a large object is not looked through for every few bytes of it. It
// reports whether anything came.
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

// failed returns the error of a stream that is not as it should be.
func (p *pieces) failed(want string) error {
	if p.err != nil && p.from == p.to {
		return listError(p.err)
	}
	return fmt.Errorf("%w: the list has %q where %s should be", ErrUnavailable, p.peek(), want)
}

// expect steps over a character that must come now.
func (p *pieces) expect(c byte) error {
	if p.peek() != c {
		return p.failed(fmt.Sprintf("%q", c))
	}
	p.from++
	return nil
}

// comma steps over one where a name follows, and over nothing where the object ends.
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

// null steps over the word.
func (p *pieces) null() error {
	for _, c := range []byte("null") {
		if err := p.expect(c); err != nil {
			return err
		}
	}
	return nil
}

// object returns the next object of the stream, whole.
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

// Read reads what was not taken.
func (p *pieces) Read(b []byte) (int, error) {
	if p.from == p.to && !p.more() {
		return 0, p.err
	}
	n := copy(b, p.buf[p.from:p.to])
	p.from += n
	return n, nil
}

var _ io.Reader = (*pieces)(nil)

// valueLength returns how many bytes the object or array takes that b begins with; 0 when it does not end in b. It
// looks for the closing bracket alone: whoever reads the value says what is wrong inside it.
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

// stringLength returns how many bytes the string takes that b begins with, with its quotes; 0 when it does not end in
// b.
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
