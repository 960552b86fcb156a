// Package plugin asks the allocator as a CNI plugin does.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/bcsnet/bcsnet/pkg/httpapi"
)

// Answer is what the allocator says.
type Answer struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Reason  string          `json:"reason"`
	Data    json.RawMessage `json:"data"`
	// Address is what an ADD got; empty after a refusal.
	Address httpapi.Allocation `json:"-"`
}

// Ask sends an ADD (POST) or a DEL (DELETE) to the controller at a URL.
func Ask(ctx context.Context, h *http.Client, method, url string, request httpapi.AllocateRequest) (a Answer, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, method, url+httpapi.Prefix, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	resp, err := h.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %q: %w", resp.Status, text, err)
	}
	_ = json.Unmarshal(a.Data, &a.Address) // null after a refusal
	return a, nil
}
