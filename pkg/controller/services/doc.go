// Package services gives Services of type LoadBalancer their addresses, on the leader (--services). It writes their
// status; others announce the addresses.
package services
