package sticky_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// want is how things should be in the end.
type want struct {
	pods int
	// names are pods that have these addresses.
	names map[string]string
	// gone are pods that are no more.
	gone map[types.UID]bool
	// same: what is held is exactly this. more: at least this. With neither, it is what the pods have and no more.
	same, more map[string]string
	// moved is the number of addresses in same that may be replaced by others.
	moved int
}

// check compares a picture with what is wanted.
func (w want) check(p picture, beside int) error {
	for name, address := range w.names {
		if p.pods[name] != address {
			return fmt.Errorf("%s has %q, want %s\nheld: %s", name, p.pods[name], address, list(p.held))
		}
	}
	for uid := range w.gone {
		if p.uids[uid] {
			return fmt.Errorf("pod %s is there", uid)
		}
	}
	if w.same == nil && w.more == nil && len(p.held) != w.pods+beside {
		return fmt.Errorf("%d addresses are held, want %d\nheld: %s", len(p.held), w.pods+beside, list(p.held))
	}
	missing := 0
	for _, kept := range []map[string]string{w.same, w.more} {
		for address, who := range kept {
			if _, ok := p.held[address]; ok {
				continue
			}
			if missing++; missing > w.moved {
				return fmt.Errorf("%s is not kept, which was %s\nheld: %s", address, who, list(p.held))
			}
		}
	}
	if w.same != nil && len(p.held) != len(w.same) {
		return fmt.Errorf("%d addresses are held, want those %d: %s\nheld: %s", len(p.held), len(w.same), list(w.same),
			list(p.held))
	}
	return nil
}

// expect waits until all is as it should be.
func (a *app) expect(t *testing.T, what string, w want) (p picture) {
	t.Helper()
	eventually(t, what, func() (err error) {
		p, err = a.look(t, w.pods)
		if err == nil {
			err = w.check(p, a.beside)
		}
		return err
	})
	return p
}

// keeps waits until all is as it should be, and sees that it stays so.
func (a *app) keeps(t *testing.T, what string, w want) (p picture) {
	t.Helper()
	p = a.expect(t, what, w)
	if len(w.same) == 0 || a.hasty {
		return p // nothing is kept for pods that are not there
	}
	stays(t, what, func() error {
		now, err := a.look(t, w.pods)
		if err != nil {
			return err
		}
		return w.check(now, a.beside)
	})
	return p
}

// replaced is what is wanted after pods were replaced by others.
func (a *app) replaced(before picture, gone map[types.UID]bool, pods int) want {
	w := want{pods: pods, gone: gone}
	switch r := a.rule(); {
	case !r.kept:
	case r.byName:
		w.names = before.pods
	case !r.ends:
		w.more = before.held
	}
	return w
}

// passedOn is what is wanted after pods were replaced by others that came, but for some beyond the replicas, when they
// were being deleted: an app keeps their addresses, whichever pods have them. A replica that starts does not know which
// pods went before that, without a DEL so far: only pods that end in order are sure to pass theirs on.
func (a *app) passedOn(before picture, gone map[types.UID]bool, surge int) want {
	w := a.replaced(before, gone, len(before.pods))
	if r := a.rule(); a.podAnnotations[inOrder] != "" && r.kept && !r.byName && (surge == 0 || r.ends) {
		w.same, w.more, w.moved = before.held, nil, surge
	}
	return w
}

// scaled is what is wanted after the app was scaled down to n pods, or deleted, where it is 0.
func (a *app) scaled(before picture, n int) want {
	w := want{pods: n}
	r := a.rule()
	if r.kept && !r.ends {
		w.same = before.held
	}
	if r.kept && r.byName {
		w.names = a.first(before, n)
	}
	return w
}

// scaledBack is what is wanted when the app has as many pods again, which it had before it went down to n.
func (a *app) scaledBack(before picture, n int) want {
	w := want{pods: len(before.pods)}
	switch r := a.rule(); {
	case !r.kept:
	case r.byName && r.ends:
		w.names = a.first(before, n)
	case r.byName:
		w.names, w.same = before.pods, before.held
	case !r.ends:
		w.same = before.held
	}
	return w
}

// first are the first n of the numbered pods.
func (a *app) first(before picture, n int) map[string]string {
	names := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("%s-%d", a.name, i)
		names[name] = before.pods[name]
	}
	return names
}
