// Package install installs bcsnet in each way that users have, Helm, kubectl and bcsnetctl, on real control planes, and
// compares what is there then; and it takes each over from the others.
package install
