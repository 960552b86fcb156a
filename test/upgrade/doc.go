// Package upgrade brings a control plane from the release before this one to this one and back, with leases, claims and
// traffic going on, and plugins of each release with controllers of the other.
package upgrade
