package ui

import "strings"

// words returns the words of a language for those of the program and of the templates, in which pages show them. A word
// without another one is shown as it is.
func words(lang string) map[string]string {
	all := map[string]string{}
	text, _ := templates.ReadFile("pages/" + lang + ".txt") // each language has one
	for line := range strings.Lines(string(text)) {
		if word, other, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = "); ok {
			all[word] = other
		}
	}
	return all
}
