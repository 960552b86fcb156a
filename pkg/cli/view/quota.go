package view

import (
	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// QuotaState returns a word if a namespace is near its quota; else an empty text.
func QuotaState(u ipam.NamespaceUse) string {
	switch {
	case u.Over():
		return v1.ConditionOverLimit
	case u.Has == u.Quota:
		return "Reached"
	case u.NearlyReached():
		return "NearlyReached"
	}
	return ""
}
