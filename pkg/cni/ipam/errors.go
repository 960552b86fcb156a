package ipam

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/bcsnet/bcsnet/pkg/cni/client"
	"github.com/bcsnet/bcsnet/pkg/cni/netconf"
	"github.com/bcsnet/bcsnet/pkg/cni/runstate"
	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// codeRefused is the plugin's code for requests that the allocator refuses until somebody changes something. CNI leaves
// the codes from 100 on to plugins.
const codeRefused uint = 100

// The following functions return CNI errors with the text that the runtime's event shows: a sentence, then the next
// step.

func cniError(code uint, details, format string, args ...any) *types.Error {
	return types.NewError(code, "bcsnet-ipam: "+fmt.Sprintf(format, args...), details)
}

// configError returns the error for a configuration that somebody has to correct.
func configError(what string, err error) error {
	code := types.ErrInvalidNetworkConfig
	var problem *netconf.Problem
	switch {
	case errors.Is(err, netconf.ErrNoObject):
		code = types.ErrDecodingFailure
	case errors.As(err, &problem) && problem.Field == netconf.FieldArgs:
		code, what = types.ErrInvalidEnvironmentVariables, "the call"
	}
	return cniError(code, oneLine(err), "%s is wrong", what)
}

func ioError(what string, err error) error {
	return cniError(types.ErrIOFailure, oneLine(err), "%s", what)
}

// asCNI returns an error in CNI's form; nil for nil.
func asCNI(err error) *types.Error {
	var coded *types.Error
	var refused *client.Refusal
	var unanswered *client.Unanswered
	var taken *conflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &taken):
		return cniError(types.ErrTryAgainLater, taken.details(), "%s", taken.Error())
	case errors.As(err, &coded):
		return coded
	case errors.As(err, &refused):
		code := codeRefused
		if refused.Retry {
			code = types.ErrTryAgainLater
		}
		hint := ""
		if refused.Hint != "" {
			hint = "hint: " + refused.Hint
		}
		return cniError(code, hint, "%s (%s)", refused.Message, refused.Reason)
	case errors.As(err, &unanswered):
		return cniError(types.ErrTryAgainLater, "hint: "+whyUnanswered(err), "no replica of the allocator answered: %v",
			unanswered)
	default:
		return cniError(types.ErrInternal, "", "%s", oneLine(err))
	}
}

// whyUnanswered returns the next step after a call that no replica answered.
func whyUnanswered(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.Is(err, client.ErrToken):
		return "the replicas do not take this node's token: the installer's pod on this node renews it"
	case errors.As(err, &authority), errors.As(err, &name):
		return "ca.crt or serverName of this node do not match the replicas: the installer's pod on this node " +
			"renews them"
	case errors.Is(err, client.ErrForeign):
		return "the URLs lead to something else than bcsnet-controller"
	default:
		return "see whether pods of bcsnet-controller are ready, and whether this node reaches them"
	}
}

// outcomeOf returns the outcome of a call for calls.log.
func outcomeOf(err error) runstate.Outcome {
	var coded *types.Error
	var refused *client.Refusal
	var unanswered *client.Unanswered
	var taken *conflictError
	switch {
	case err == nil:
		return runstate.OK
	case errors.As(err, &taken):
		return runstate.Conflict
	case errors.As(err, &refused):
		return runstate.Refused
	case errors.As(err, &unanswered):
		return runstate.Unanswered
	case errors.As(err, &coded) && coded.Code <= types.ErrInvalidNetworkConfig && coded.Code != types.ErrIOFailure:
		return runstate.Invalid
	default:
		return runstate.Failed
	}
}

func reasonOf(err error) string {
	var refused *client.Refusal
	var taken *conflictError
	switch {
	case errors.As(err, &taken):
		return string(ipam.ReasonAddressConflict)
	case errors.As(err, &refused):
		return string(refused.Reason)
	}
	return ""
}

// fullOf returns the message of a refusal because pools are full; empty for any other error.
func fullOf(err error) string {
	if refused, ok := errors.AsType[*client.Refusal](err); ok {
		switch refused.Reason { //nolint:exhaustive // all others have nothing to do with room
		case ipam.ReasonPoolExhausted, ipam.ReasonNoFreeBlock, ipam.ReasonHostFull:
			return refused.Message
		}
	}
	return ""
}

// oneLine returns the text of an error in one line: joined errors have a line each.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
