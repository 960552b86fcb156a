package netconf

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Names of the list of a GC. A draft of the specification had another one, and libcni sends both.
const (
	fieldValid      = "cni.dev/valid-attachments"
	fieldValidDraft = "cni.dev/attachments"
)

// Attachment is one interface of one container.
type Attachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifname"`
}

// parseValid reads the attachments of a GC: nil where there is no list, or one that is wrong. Whatever a list lacks is
// given up, so two lists that differ are wrong.
func parseValid(top object) []Attachment {
	valid, draft := parseAttachments(top, fieldValid), parseAttachments(top, fieldValidDraft)
	switch {
	case !top.has(fieldValid):
		return draft
	case valid != nil && draft != nil && !slices.Equal(valid, draft):
		top.problems.add(fieldValidDraft, "it is another list than %s", fieldValid)
		return nil
	default:
		return valid
	}
}

// parseAttachments reads one list. One that is null is empty: libcni writes it so.
func parseAttachments(top object, name string) []Attachment {
	if !top.has(name) {
		return nil
	}
	var all []Attachment
	if err := json.Unmarshal(top.fields[name], &all); err != nil {
		top.problems.add(name, "it is not a list of attachments: %v", err)
		return nil
	}
	for i, a := range all {
		if a.ContainerID == "" || a.IfName == "" {
			top.problems.add(fmt.Sprintf("%s[%d]", name, i), "it lacks containerID or ifname")
			return nil
		}
	}
	if all == nil {
		all = []Attachment{}
	}
	return all
}
