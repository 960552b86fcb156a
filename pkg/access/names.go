package access

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkNames refuses a user without a name, and names with what cannot be printed: line ends, escapes of terminals and
// marks that turn the direction of writing would write other lines than the caller's own into logs and histories. A
// replica could not tell another one such a name, which goes into a header.
func checkNames(user string, groups ...string) error {
	if user == "" {
		return errors.New("it has no name")
	}
	for _, name := range append([]string{user}, groups...) {
		if !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
			return fmt.Errorf("the name %q has characters that cannot be printed", name)
		}
	}
	return nil
}
