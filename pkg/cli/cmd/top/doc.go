// Package top has the commands that show the fullest pools, and the hosts and namespaces that hold most addresses, and
// how fast that changes. It imports no other command.
package top
