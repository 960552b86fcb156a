// Package inspect has the commands that explain addresses: inspect shows which ones are allocated, free, reserved and
// cooling, trace shows the objects that a pod's address depends on, explain says why a pod has its address or none. It
// imports no other command.
package inspect
