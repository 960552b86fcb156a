package view

import (
	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// QuotaState says in a word how near a namespace is to its quota; nothing if it is far from it.
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
