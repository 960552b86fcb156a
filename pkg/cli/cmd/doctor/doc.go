// Package doctor has the command doctor, which finds problems and releases leaked addresses. It reads the snapshot that
// pkg/doctor judges, and prints the findings. It imports no other command.
package doctor
