// Package install has the commands that install, upgrade and remove bcsnet in the cluster, and show its version. It
// imports no other command.
package install
