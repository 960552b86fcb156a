package ui

import "strings"

// words returns the translations of English words of the pages. A missing word is shown in English.
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
