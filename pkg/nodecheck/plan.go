package nodecheck

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// Port is the port on which a pod of the check answers HTTP requests with its name.
const Port = 18090

// Plan lists what one pod must ask. The pod reads it from a file that is written after all pods are known.
type Plan struct {
	// Own are the addresses of the pod, each with its pool's gateway, which may be missing.
	Own   []Own  `json:"own"`
	Peers []Peer `json:"peers"`
}

// Own is an address of the pod itself.
type Own struct {
	Addr    netip.Addr `json:"addr"`
	Gateway netip.Addr `json:"gateway"`
}

// Peer is another pod, with the name that it answers.
type Peer struct {
	Name  string       `json:"name"`
	Addrs []netip.Addr `json:"addrs"`
}

// Encode returns the plan in the form that the pod reads.
func (p Plan) Encode() (string, error) {
	text, err := json.Marshal(p)
	return string(text), err
}

// ReadPlan parses the output of Encode.
func ReadPlan(text []byte) (p Plan, err error) {
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("the plan of the check cannot be read: %w", err)
	}
	return p, nil
}

// Report is the result of a pod. It is the last message of its container, of which Kubernetes keeps 4096 bytes.
// Therefore peers and addresses are numbers, in the order of the plan.
type Report struct {
	// Lost are the addresses of peers that could not be reached.
	Lost []Lost `json:"lost,omitempty"`
	// Links are the results for the links of the own addresses.
	Links []Link `json:"links"`
}

// Lost is an address of a peer that did not answer, or answered with another name.
type Lost struct {
	Peer int    `json:"p"`
	Addr int    `json:"a,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Link is the result for the link of an own address.
type Link struct {
	// Gateway reports whether the gateway answers. GatewayMAC is empty if only the kernel could resolve the gateway.
	Gateway    bool   `json:"gateway,omitempty"`
	GatewayMAC string `json:"gatewayMAC,omitempty"`
	// GatewayWhy is the reason why the gateway did not answer.
	GatewayWhy string `json:"gatewayWhy,omitempty"`
	// Others are the MACs of other machines that answer for the own address.
	Others []string `json:"others,omitempty"`
	// Unasked is the reason why duplicates were not tested; empty if they were.
	Unasked string `json:"unasked,omitempty"`
}

// Bounds of the content of a report.
const (
	maxReport = 4096
	maxWhy    = 160
	maxOthers = 4
)

// Encode returns the report in at most 4096 bytes. If necessary it shortens reasons, never results.
func (r Report) Encode() ([]byte, error) {
	for _, limit := range []int{maxWhy, maxWhy / 8, 0} {
		text, err := json.Marshal(r.cut(limit))
		if err != nil || len(text) <= maxReport {
			return text, err
		}
	}
	return nil, fmt.Errorf("the report of the check is longer than %d bytes", maxReport)
}

// cut returns the report with reasons of at most limit bytes each.
func (r Report) cut(limit int) (out Report) {
	for _, l := range r.Lost {
		l.Why = l.Why[:min(len(l.Why), limit)]
		out.Lost = append(out.Lost, l)
	}
	for _, l := range r.Links {
		l.GatewayWhy = l.GatewayWhy[:min(len(l.GatewayWhy), maxWhy)]
		l.Unasked = l.Unasked[:min(len(l.Unasked), maxWhy)]
		l.Others = l.Others[:min(len(l.Others), maxOthers)]
		out.Links = append(out.Links, l)
	}
	return out
}

// ReadReport parses the output of Encode, and refuses a report that does not match the plan.
func ReadReport(text string, p Plan) (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("the pod's report cannot be read: %w", err)
	}
	if len(r.Links) != len(p.Own) {
		return nil, fmt.Errorf("the pod's report is about %d addresses, and it has %d", len(r.Links), len(p.Own))
	}
	for _, l := range r.Lost {
		if l.Peer < 0 || l.Peer >= len(p.Peers) || l.Addr < 0 || l.Addr >= len(p.Peers[l.Peer].Addrs) {
			return nil, fmt.Errorf("the pod's report is about address %d of peer %d, which it was not to ask", l.Addr,
				l.Peer)
		}
	}
	return r, nil
}
