// Package failpoint lets a test build break one guard on purpose, to prove that the tests listed for the guard notice
// it. It knows no guard: the code of a guard asks for it by name, and test/faults lists them all.
package failpoint
