package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/pkg/ipam"
)

// failure is an error as the user reads it.
type failure struct {
	// reason is a stable word that scripts may look for; may be empty.
	reason ipam.Reason
	// message says what, which object and why.
	message string
	// hint is the next step, as a command where there is one. It names the program bcsnetctl; the user
	// reads the name that was called.
	hint string
	// code is the exit code; 0 leaves it to exitCode.
	code  int
	cause error
}

// Reasons of this package, beside those of package ipam.
const (
	reasonPoolNotFound       ipam.Reason = "PoolNotFound"
	reasonPoolExists         ipam.Reason = "PoolExists"
	reasonPoolOverlap        ipam.Reason = "PoolOverlap"
	reasonPoolInvalid        ipam.Reason = "PoolInvalid"
	reasonPoolTerminating    ipam.Reason = "PoolTerminating"
	reasonAlreadyInPool      ipam.Reason = "AlreadyInPool"
	reasonAddressNotUsable   ipam.Reason = "AddressNotUsable"
	reasonAddressNotInSubnet ipam.Reason = "AddressNotInSubnet"
	reasonAddressReserved    ipam.Reason = "AddressReserved"
	reasonAddressKept        ipam.Reason = "AddressKept"
	reasonPodLives           ipam.Reason = "PodLives"
	reasonLeaseChanged       ipam.Reason = "LeaseChanged"
	reasonClaimExists        ipam.Reason = "ClaimExists"
	reasonClaimInvalid       ipam.Reason = "ClaimInvalid"
	reasonClaimManaged       ipam.Reason = "ClaimManaged"
	reasonHostNotFound       ipam.Reason = "HostNotFound"
	reasonHostInSubnet       ipam.Reason = "HostInSubnet"
	reasonKindNotFound       ipam.Reason = "KindNotFound"
	reasonNamespaceNotFound  ipam.Reason = "NamespaceNotFound"
	reasonNodeNotFound       ipam.Reason = "NodeNotFound"
	reasonNodeReady          ipam.Reason = "NodeReady"
	reasonNodeUnknown        ipam.Reason = "NodeUnknown"
)

// hintRights is the next step where the API server forbids something.
const hintRights = "your user needs the ClusterRole bcsnet-operator, or bcsnet-viewer to look only; who you are: kubectl auth whoami"

func (f *failure) Error() string { return f.message }

func (f *failure) Unwrap() error { return f.cause }

// refuse makes an error with a reason; the exit code is 1.
func refuse(reason ipam.Reason, format string, args ...any) *failure {
	return &failure{reason: reason, message: fmt.Sprintf(format, args...)}
}

// usagef makes an error of what was typed; the exit code is 2.
func usagef(format string, args ...any) *failure {
	return &failure{code: exitUsage, message: fmt.Sprintf(format, args...)}
}

// withHint sets the next step.
func (f *failure) withHint(format string, args ...any) *failure {
	f.hint = fmt.Sprintf(format, args...)
	return f
}

// report prints an error: a line that says what, one with the hint. Joined errors are printed one by
// one; those in a row with the same hint share it.
func (s *session) report(ctx context.Context, err error) {
	if ctx.Err() != nil && err != nil {
		s.say.fail("interrupted")
	}
	var due string
	for _, e := range flatten(err) {
		if errors.Is(e, context.Canceled) {
			continue
		}
		text, hint := s.texts(e)
		if text == "" {
			continue // the command has said it
		}
		if due != "" && due != hint {
			s.hint("%s", due)
		}
		s.say.fail("%s", text)
		due = hint
	}
	if due != "" {
		s.hint("%s", due)
	}
}

// texts are what is printed of one error.
func (s *session) texts(err error) (text, hint string) {
	text = err.Error()
	var reason ipam.Reason
	var f *failure
	var r *ipam.Refusal
	switch {
	case errors.As(err, &f):
		reason, hint = f.reason, f.hint
	case errors.As(err, &r):
		// A Refusal's own text holds its hint.
		text = strings.TrimSuffix(text, "; hint: "+r.Hint)
		reason, hint = r.Reason, r.Hint
		if r.Reason == ipam.ReasonForbidden {
			hint = hintRights
		}
	}
	if reason != "" {
		text += " (" + string(reason) + ")"
	}
	return s.called(text), hint
}

// several are the errors of several objects, each reported by itself.
type several []error

func (s several) Error() string {
	var texts []string
	for _, e := range s {
		texts = append(texts, e.Error())
	}
	return strings.Join(texts, "\n")
}

func (s several) Unwrap() []error { return s }

// orNil is nil when there is no error.
func (s several) orNil() error {
	if len(s) == 0 {
		return nil
	}
	return s
}

// compact leaves out what is no error.
func (s several) compact() error {
	return slices.DeleteFunc(s, func(err error) bool { return err == nil }).orNil()
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if all, ok := errors.AsType[several](err); ok {
		return all
	}
	return []error{err}
}
