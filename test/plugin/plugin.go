// Package plugin asks the allocator as a CNI plugin does.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/bcsnet/bcsnet/pkg/httpapi/wire"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Answer is what the allocator says.
type Answer struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Reason  ipam.Reason     `json:"reason"`
	Data    json.RawMessage `json:"data"`
	// Address is what an ADD got; empty after a refusal.
	Address wire.Allocation `json:"-"`
	// URL is that of the replica that was asked. By names the process that answered: another one if that forwarded.
	URL string `json:"-"`
	By  string `json:"-"`
	// Status is that of HTTP, Named the reason in the header, RetryAfter when to come again; zero if it is not said.
	Status     int           `json:"-"`
	Named      ipam.Reason   `json:"-"`
	RetryAfter time.Duration `json:"-"`
}

// incomplete returns what the answer of a replica that could not decide lacks; empty for nothing.
func (a Answer) incomplete() string {
	switch {
	case a.Status != http.StatusServiceUnavailable:
	case a.RetryAfter < time.Second:
		return "it does not say when to come again"
	case a.Named != a.Reason:
		return fmt.Sprintf("the header says %q", a.Named)
	}
	return ""
}

// Addrs returns the addresses that an ADD got, in order.
func (a Answer) Addrs() (all []netip.Addr) {
	for _, ip := range a.Address.IPs {
		if addr, err := netip.ParseAddr(ip.IPAddr); err == nil {
			all = append(all, addr)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// Temporary reports whether the same request can succeed later.
func (a Answer) Temporary() bool {
	for _, info := range ipam.ReasonTable() {
		if info.Reason == a.Reason {
			// A pod that was created is there for everybody who reads; nothing else changes that.
			return info.Retry && a.Reason != ipam.ReasonPodNotFound && a.Reason != ipam.ReasonInternal
		}
	}
	return false
}

// Ask sends an ADD (POST) or a DEL (DELETE) to the controller at a URL.
func Ask(
	ctx context.Context, h *http.Client, method, url string, request wire.AllocateRequest,
) (a Answer, err error) {
	return send(ctx, h, method, url+wire.Prefix, request, 0, new(string))
}

// send asks. A caller who waits for no longer than a time may state that time; 0 for one who does not.
func send(
	ctx context.Context, h *http.Client, method, url string, request any, wait time.Duration, receipt *string,
) (a Answer, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	if wait > 0 {
		r.Header.Set("Bcsnet-Timeout-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
	}
	const header = "Bcsnet-Receipt"
	if *receipt != "" {
		r.Header.Set(header, *receipt)
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
	if given := resp.Header.Get(header); given != "" {
		*receipt = given
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // none, if it is no number
	a.Status, a.Named, a.RetryAfter = resp.StatusCode, ipam.Reason(resp.Header.Get("Bcsnet-Reason")),
		time.Duration(seconds)*time.Second
	a.By = resp.Header.Get("Bcsnet-Answered-By")
	_ = json.Unmarshal(a.Data, &a.Address) // null after a refusal
	return a, nil
}
