// Package install has the commands for what bcsnet is in the cluster: install, upgrade, uninstall and version. It
// imports no other command.
package install
