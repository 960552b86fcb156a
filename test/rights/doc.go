// Package rights tries on a real API server what each role may, and what the policies refuse and must let through.
package rights
