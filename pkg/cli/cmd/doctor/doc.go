// Package doctor is the command doctor, which finds problems and releases leaked addresses. It reads the snapshot for
// the checks of pkg/doctor, and prints their findings. It imports no other command.
package doctor
