package access

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkNames refuses a user without a name, and names with unprintable characters. Line ends, terminal escapes and
// marks that change the writing direction would forge lines in logs and histories. Such a name also could not be
// forwarded to another replica in a header.
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
