// Package failpoint lets a test build break one guard on purpose, so that the tests that are named for the guard can be
// seen to find it. It knows no guard: whoever has one asks for it by its name, and test/faults lists them all.
package failpoint
