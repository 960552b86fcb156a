// Package doctor is the command that looks for what is wrong and releases leaked addresses. It reads the snapshot that
// pkg/doctor judges, and prints the findings. It imports no other command.
package doctor
