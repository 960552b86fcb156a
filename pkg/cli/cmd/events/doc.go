// Package events is the command that lists and follows the events of pools and claims. It imports no other command.
package events
