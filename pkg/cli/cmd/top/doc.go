// Package top has the commands that show the fullest pools, the hosts and namespaces with most addresses, and the rates
// of change. It imports no other command.
package top
