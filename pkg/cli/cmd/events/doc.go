// Package events has the command events, which lists and follows the events of pools and claims. It imports no other
// command.
package events
