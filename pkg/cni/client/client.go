package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// tryTimeout bounds one try.
	tryTimeout = 8 * time.Second
	// margin is the time by which a replica must end before the plugin does, so that its refusal can still arrive.
	margin        = 200 * time.Millisecond
	headerTimeout = "Bcsnet-Timeout-Ms"
	headerID      = "X-Request-Id"
	headerReceipt = "Bcsnet-Receipt"
	// maxReceipt bounds a stored receipt, in octets.
	maxReceipt = 256
)

// Client sends requests to the replicas of one allocator.
type Client struct {
	// Access returns how to reach the replicas. It is called for each try.
	Access func() (Access, error)
	// Preferred is the URL of the replica that is asked first, usually the one that answered last. Empty for any.
	Preferred string
	// Now returns the time.
	Now func() time.Time

	// Receipt is the receipt of the last answered ADD on this node, which each request sends; may be empty. An answer
	// with a receipt replaces it.
	Receipt string

	// Tries counts the requests, and Replica is the URL that answered last.
	Tries   int
	Replica string
}

// Call is one question.
type Call struct {
	Method, Path string
	// Query is the query of the URL; nil for none.
	Query url.Values
	// Body is sent as JSON; nil for none.
	Body any
	// RequestID identifies the call in the allocator's log and answers.
	RequestID string
	// Once disables retries after a temporary refusal.
	Once bool
	// Accept decodes the data of a success, and returns an error if the data does not answer this request.
	Accept func(data json.RawMessage) error
}

// Do asks until a replica answers or the context, which needs a deadline, ends. The error is a *Refusal, an
// *Unanswered, or one that asking another replica would not change.
func (c *Client) Do(ctx context.Context, call Call) error {
	body, err := encode(call.Body)
	if err != nil {
		return err
	}
	s := newSchedule(c.Preferred)
	var last *Refusal
	for {
		access, err := c.Access()
		if err != nil {
			return err
		}
		if len(access.Replicas) == 0 {
			return errors.New("no replica is known")
		}
		replica, t := s.next(access.Replicas)
		if !wait(ctx, t.from.Sub(c.Now())) {
			return s.givenUp(last)
		}
		o := c.try(ctx, access, replica, call, body)
		last = o.refused
		if o.failed != nil {
			s.note(t, o, c.Now())
			continue
		}
		c.Replica, s.preferred = replica.String(), replica.String()
		if o.refused == nil {
			return nil
		}
		if call.Once || !o.refused.Retry || !s.patient(c.Now()) {
			return o.refused
		}
	}
}

// wait waits for a time. If the context would end earlier, it returns false at once.
func wait(ctx context.Context, pause time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) <= pause {
		return false
	}
	if pause <= 0 {
		return true
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func encode(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	return json.Marshal(body)
}

// try sends one request to one replica.
func (c *Client) try(ctx context.Context, access Access, replica *url.URL, call Call, body []byte) outcome {
	ctx, stop := context.WithTimeout(ctx, tryTimeout)
	defer stop()
	target := replica.JoinPath(call.Path)
	target.RawQuery = call.Query.Encode()
	r, err := http.NewRequestWithContext(ctx, call.Method, target.String(), bytes.NewReader(body))
	if err != nil {
		return outcome{failed: err}
	}
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		left = max(left-margin, left/2, time.Millisecond)
		r.Header.Set(headerTimeout, strconv.FormatInt(left.Milliseconds(), 10))
	}
	r.Header.Set(headerID, call.RequestID)
	r.Header.Set("Content-Type", "application/json")
	if access.Token != "" && replica.Scheme == "https" { // others on the network must not read it
		r.Header.Set("Authorization", "Bearer "+access.Token)
	}
	if c.Receipt != "" {
		r.Header.Set(headerReceipt, c.Receipt)
	}
	c.Tries++
	resp, end, err := access.exchange(r) //nolint:bodyclose // end closes the connection
	if err != nil {
		return outcome{failed: err}
	}
	defer end()
	o := call.read(resp)
	if given := resp.Header.Get(headerReceipt); given != "" && len(given) <= maxReceipt && o == (outcome{}) {
		c.Receipt = given
	}
	return o
}

// Ping returns an error unless one of the replicas reports, within the time of the context, that it can decide.
func (c *Client) Ping(ctx context.Context) error {
	access, err := c.Access()
	if err != nil {
		return err
	}
	s := newSchedule(c.Preferred)
	for i := range access.Replicas {
		replica, t := s.next(access.Replicas)
		if err = c.ping(ctx, len(access.Replicas)-i, access, replica); err == nil {
			c.Replica = replica.String()
			return nil
		}
		s.note(t, outcome{failed: err}, c.Now())
	}
	return s.givenUp(nil)
}

// ping asks one replica. It may use the remaining time divided by the number of replicas that share it.
func (c *Client) ping(ctx context.Context, sharing int, access Access, replica *url.URL) error {
	if deadline, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(sharing))
		defer stop()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, replica.JoinPath("/readyz").String(), nil)
	if err != nil {
		return err
	}
	c.Tries++
	resp, end, err := access.exchange(r) //nolint:bodyclose // end closes the connection
	if err != nil {
		return err
	}
	defer end()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && (resp.StatusCode != http.StatusOK || string(bytes.TrimSpace(text)) != "ok") {
		err = fmt.Errorf("HTTP %d with %q", resp.StatusCode, clip(string(text)))
	}
	return err
}
