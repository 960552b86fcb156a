package ui

import "strings"

// words reads the words of the pages in another language than English, by the English ones. What is not among them is
// shown in English.
func words(lang string) map[string]string {
	all := map[string]string{}
	text, err := templates.ReadFile("pages/" + lang + ".txt")
	if err != nil {
		return all // English has no file
	}
	for line := range strings.Lines(string(text)) {
		if word, other, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = "); ok {
			all[word] = other
		}
	}
	return all
}
