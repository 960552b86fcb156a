package sticky_test

import "testing"

func (w *world) random(t *testing.T) {}
