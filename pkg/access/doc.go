// Package access finds out who calls the allocator by HTTPS, and asks the cluster's RBAC what they may do.
package access
