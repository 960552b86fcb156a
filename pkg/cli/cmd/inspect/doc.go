// Package inspect has the commands that explain addresses: inspect shows which of them are allocated, free, reserved
// and cooling, trace follows the way from a pod or an address to all that it depends on, explain says why a pod has its
// address or none. It imports no other command.
package inspect
