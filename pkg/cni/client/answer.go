package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// maxAnswer bounds an answer, in octets: the answer to a GC names as many attachments as its list may have.
const maxAnswer = 4 << 20

// envelope is wire.Envelope for reading: required fields are pointers, and the caller decodes the data.
type envelope struct {
	Code      *int            `json:"code"`
	Result    *bool           `json:"result"`
	Message   string          `json:"message"`
	Data      json.RawMessage `json:"data"`
	RequestID string          `json:"request_id"`
	Reason    ipam.Reason     `json:"reason"`
	Hint      string          `json:"hint"`
}

// outcome is the outcome of one try. At most one of its errors is set.
type outcome struct {
	// refused is the allocator's refusal.
	refused *Refusal
	// failed is the reason why there is no answer.
	failed error
	// wait is the time in which the replica, or with everywhere any replica, must not be asked.
	wait       time.Duration
	everywhere bool
}

// read returns the outcome of a response. accept decodes the data of a success; if it returns an error, the answer is
// treated as foreign.
func (c Call) read(resp *http.Response) outcome {
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return outcome{failed: fmt.Errorf("the answer was cut off: %w", err)}
	case len(text) > maxAnswer:
		return outcome{failed: foreign("it has more than %d octets", maxAnswer)}
	case resp.StatusCode == http.StatusUnauthorized:
		return outcome{failed: ErrToken}
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return outcome{failed: foreign("HTTP %d with %q", resp.StatusCode, clip(string(text)))}
	}
	if e.Code == nil || e.Result == nil || e.RequestID != c.RequestID || *e.Result != (*e.Code == 0) {
		return outcome{failed: foreign("HTTP %d with %q, without the envelope of request %s", resp.StatusCode,
			clip(string(text)), c.RequestID)}
	}
	if *e.Code != 0 {
		o := outcome{refused: newRefusal(e.Reason, e.Message, e.Hint)}
		switch resp.StatusCode {
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			o.wait = retryAfter(resp.Header)
			o.everywhere = e.Reason == ipam.ReasonOverloaded || resp.StatusCode == http.StatusTooManyRequests
			o.failed = fmt.Errorf("%s (%s)", e.Message, e.Reason)
		}
		return o
	}
	if resp.StatusCode != http.StatusOK {
		return outcome{failed: foreign("HTTP %d with code 0", resp.StatusCode)}
	}
	if err := c.Accept(e.Data); err != nil {
		return outcome{failed: foreign("%v", err)}
	}
	return outcome{}
}

// retryAfter returns the time in the header Retry-After; a second without it.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16)
	if err != nil {
		return time.Second
	}
	return time.Duration(seconds) * time.Second
}

func clip(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
