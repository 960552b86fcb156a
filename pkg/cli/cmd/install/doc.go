// Package install has the commands for the installation in the cluster: install, upgrade, uninstall and version. It
// imports no other command.
package install
