package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// Failure is an error in the form that the user reads.
type Failure struct {
	// Reason is a stable word for scripts; may be empty.
	Reason ipam.Reason
	// Message names the problem, the object and the cause.
	Message string
	// Hint is the next step, if possible a command. It calls the program bcsnetctl, which Called replaces.
	Hint string
	// Code is the exit code. If it is 0, ExitCode chooses.
	Code  int
	Cause error
}

// Reasons of this package, in addition to those of package ipam.
const (
	ReasonPoolNotFound       ipam.Reason = "PoolNotFound"
	ReasonPoolExists         ipam.Reason = "PoolExists"
	ReasonPoolOverlap        ipam.Reason = "PoolOverlap"
	ReasonPoolInvalid        ipam.Reason = "PoolInvalid"
	ReasonPoolTerminating    ipam.Reason = "PoolTerminating"
	ReasonInvalidParent      ipam.Reason = "InvalidParent"
	ReasonNoGroup            ipam.Reason = "NoGroup"
	ReasonAlreadyInPool      ipam.Reason = "AlreadyInPool"
	ReasonAddressNotUsable   ipam.Reason = "AddressNotUsable"
	ReasonAddressNotInSubnet ipam.Reason = "AddressNotInSubnet"
	ReasonAddressReserved    ipam.Reason = "AddressReserved"
	ReasonAddressKept        ipam.Reason = "AddressKept"
	ReasonPodLives           ipam.Reason = "PodLives"
	ReasonHolderUnverified   ipam.Reason = "HolderUnverified"
	ReasonObjectExists       ipam.Reason = "ObjectExists"
	ReasonLeaseChanged       ipam.Reason = "LeaseChanged"
	ReasonClaimExists        ipam.Reason = "ClaimExists"
	ReasonClaimInvalid       ipam.Reason = "ClaimInvalid"
	ReasonClaimManaged       ipam.Reason = "ClaimManaged"
	ReasonHostNotFound       ipam.Reason = "HostNotFound"
	ReasonHostInSubnet       ipam.Reason = "HostInSubnet"
	ReasonHostSelected       ipam.Reason = "HostSelected"
	ReasonKindNotFound       ipam.Reason = "KindNotFound"
	ReasonNamespaceNotFound  ipam.Reason = "NamespaceNotFound"
	ReasonNodeNotFound       ipam.Reason = "NodeNotFound"
	ReasonNodeReady          ipam.Reason = "NodeReady"
	ReasonNodeUnknown        ipam.Reason = "NodeUnknown"
)

// HintRights is the hint after the API server forbids a request.
const HintRights = "your user needs the ClusterRole bcsnet-operator; bcsnet-viewer is enough to look; who you are: " +
	"kubectl auth whoami"

func (f *Failure) Error() string { return f.Message }

func (f *Failure) Unwrap() error { return f.Cause }

// Refuse returns an error with a reason and exit code 1.
func Refuse(reason ipam.Reason, format string, args ...any) *Failure {
	return &Failure{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Usagef returns an error about the command line, with exit code 2.
func Usagef(format string, args ...any) *Failure {
	return &Failure{Code: ExitUsage, Message: fmt.Sprintf(format, args...)}
}

// WithHint sets the next step.
func (f *Failure) WithHint(format string, args ...any) *Failure {
	f.Hint = fmt.Sprintf(format, args...)
	return f
}

// Report prints the message and the hint of an error on a line each. It prints joined errors one by one; consecutive
// errors with the same hint share it.
func (s *App) Report(ctx context.Context, err error) {
	if ctx.Err() != nil && err != nil {
		s.Say.fail("interrupted")
	}
	var due string
	for _, e := range Flatten(err) {
		if errors.Is(e, context.Canceled) {
			continue
		}
		text, hint := s.Texts(e)
		if text == "" {
			continue // the command has said it
		}
		if due != "" && due != hint {
			s.Hint("%s", due)
		}
		s.Say.fail("%s", text)
		due = hint
	}
	if due != "" {
		s.Hint("%s", due)
	}
}

// Texts returns the printed text and hint of one error.
func (s *App) Texts(err error) (text, hint string) {
	text = err.Error()
	var reason ipam.Reason
	var f *Failure
	var r *ipam.Refusal
	switch {
	case errors.As(err, &f):
		reason, hint = f.Reason, f.Hint
	case errors.As(err, &r):
		// The text of a Refusal includes its hint.
		text = strings.TrimSuffix(text, "; hint: "+r.Hint)
		reason, hint = r.Reason, r.Hint
		if r.Reason == ipam.ReasonForbidden {
			hint = HintRights
		}
	}
	if reason != "" {
		text += " (" + string(reason) + ")"
	}
	return s.Called(text), hint
}

// Several holds the errors of several objects. Each is reported on its own.
type Several []error

func (s Several) Error() string {
	var texts []string
	for _, e := range s {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "\n")
}

func (s Several) Unwrap() []error { return s }

// OrNil returns nil if the list is empty.
func (s Several) OrNil() error {
	if len(s) == 0 {
		return nil
	}
	return s
}

// Compact drops nil errors.
func (s Several) Compact() error {
	return slices.DeleteFunc(s, func(err error) bool { return err == nil }).OrNil()
}

// Flatten returns the elements of a Several, or the single error; none for nil.
func Flatten(err error) []error {
	if err == nil {
		return nil
	}
	if all, ok := errors.AsType[Several](err); ok {
		return all
	}
	return []error{err}
}

// Exit codes.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitFindings    = 3 // findings or differences
	ExitSkipped     = 4 // some objects were not examined, and a flag makes that an error
	ExitTimeout     = 124
	ExitInterrupted = 130
)

// Found returns the error of a search that printed findings.
func Found() error { return &Failure{Code: ExitFindings} }

// ExitCode maps an error to an exit code; no other code does. ctx is canceled by an interrupt of the user.
func ExitCode(ctx context.Context, err error) int {
	var f *Failure
	switch {
	case err == nil:
		return ExitDone
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, &f) && f.Code != 0:
		return f.Code
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	default:
		return ExitFailed
	}
}
