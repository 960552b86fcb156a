//go:build !linux && !darwin

package terminal

import (
	"errors"
	"os"
)

func ReadKeys(*os.File) (restore func(), err error) {
	return nil, errors.New("keys cannot be read here")
}
