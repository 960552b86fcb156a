package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// requester sends the requests of an overload. The generator shares its processors with what it loads: net/http would
// take as much for a request as the controller takes to refuse it. Connections are kept, as many as there are requests
// at once.
type requester struct {
	address string
	idle    chan *conn
}

type conn struct {
	net.Conn
	in  *bufio.Reader
	out []byte
	// body is the answer's.
	body []byte
}

func newRequester(url string, most int) *requester {
	return &requester{address: strings.TrimPrefix(url, "http://"), idle: make(chan *conn, most)}
}

func (w *requester) close() {
	close(w.idle)
	for c := range w.idle {
		_ = c.Close()
	}
}

func (w *requester) take(ctx context.Context) (*conn, error) {
	select {
	case c := <-w.idle:
		return c, nil
	default:
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", w.address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReaderSize(c, 1<<10)}, nil
}

// ask sends a request and returns the reason of its answer, which is empty when it was done. The error is
// context.DeadlineExceeded when the answer did not come in time.
func (w *requester) ask(ctx context.Context, method string, body []byte, patience time.Duration) (ipam.Reason, error) {
	began := time.Now()
	for {
		c, err := w.take(ctx)
		if err != nil {
			return "", err
		}
		used := len(c.out) > 0
		reason, err := c.ask(method, body, began.Add(patience))
		switch {
		case err == nil:
			w.idle <- c
			return reason, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = context.DeadlineExceeded
		}
		_ = c.Close()
		// the server ends a connection that was idle: any client asks again
		if !used || !errors.Is(err, io.EOF) && !isReset(err) {
			return "", err
		}
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !op.Timeout()
}

func (c *conn) ask(method string, body []byte, deadline time.Time) (ipam.Reason, error) {
	c.out = append(c.out[:0], method...)
	c.out = append(c.out, " "+wire.Prefix+
		" HTTP/1.1\r\nHost: bcsnet\r\nContent-Type: application/json\r\nContent-Length: "...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	c.out = append(c.out, body...)
	if err := c.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := c.Write(c.out); err != nil {
		return "", err
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return "", err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			break
		}
		if n, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(n)); err != nil {
				return "", err
			}
		}
	}
	if length < 0 {
		return "", errors.New("an answer that does not say how long it is")
	}
	c.body = append(c.body[:0], make([]byte, length)...)
	if _, err := io.ReadFull(c.in, c.body); err != nil {
		return "", err
	}
	if bytes.HasPrefix(c.body, []byte(`{"code":0,`)) {
		return "", nil
	}
	_, rest, ok := bytes.Cut(c.body, []byte(`"reason":"`))
	reason, _, ended := bytes.Cut(rest, []byte(`"`))
	if !ok || !ended {
		return "", fmt.Errorf("the answer has neither code 0 nor a reason: %s", c.body)
	}
	return ipam.Reason(reason), nil
}
