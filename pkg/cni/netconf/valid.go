package netconf

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Names of the list of a GC. A draft of the specification used another name, and libcni sends both.
const (
	fieldValid      = "cni.dev/valid-attachments"
	fieldValidDraft = "cni.dev/attachments"
)

// Attachment is one interface of one container.
type Attachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifname"`
}

// parseValid returns the attachments of a GC; nil if there is no list or it is invalid. Attachments missing from a list
// are released, so two lists that differ are an error.
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

// parseAttachments parses one list. null is an empty list, because libcni writes it so.
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
