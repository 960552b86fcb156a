package lease

import (
	"cmp"

	"github.com/google/uuid"
)

// LastHolder returns the newest holder in the history; empty for none.
func (h History) LastHolder() string { return h.last().Holder }

// LastAttachment returns the pod, by its UID, that had the address last, and its interface; both are empty if it is not
// known. The network knows the address by that interface, so it need not wait for the cooldown.
func (h History) LastAttachment() (podUID, ifName string) {
	p := h.last()
	if p.PodUID == "" {
		return "", ""
	}
	return p.PodUID, cmp.Or(p.IfName, DefaultIfName)
}

// last returns the newest entry that has a holder.
func (h History) last() Past {
	for p := range h.All() {
		if p.Holder != "" {
			return p
		}
	}
	return Past{}
}

// packedUUID stands for the length of a UID that follows as the 16 bytes of a UUID; other UIDs are shorter than it.
const packedUUID = 0xFF

// appendAttachment packs a pod's UID, of at most 254 bytes, and behind it the interface; without a UID nothing but a
// zero.
func appendAttachment(b []byte, podUID, ifName string) []byte {
	if podUID == "" {
		return append(b, 0)
	}
	if id, err := uuid.Parse(podUID); err == nil && id.String() == podUID {
		b = append(append(b, packedUUID), id[:]...)
	} else {
		b = appendText(b, cut(podUID, packedUUID-1))
	}
	return appendText(b, ifName)
}

func attachment(b []byte) (podUID, ifName string, rest []byte) {
	switch b[0] {
	case 0:
		return "", "", b[1:]
	case packedUUID:
		id, _ := uuid.FromBytes(b[1:17]) // cannot fail
		podUID, b = id.String(), b[17:]
	default:
		podUID, b = text(b)
	}
	ifName, b = text(b)
	return podUID, ifName, b
}
