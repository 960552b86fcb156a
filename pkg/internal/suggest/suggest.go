// Package suggest finds the word that a misspelt one may have meant.
package suggest

// Nearest returns the candidate that a misspelt word may have meant; empty if none is near.
func Nearest(word string, candidates []string) string {
	best, found := len(word)/2+1, ""
	for _, c := range candidates {
		if c == word {
			continue // it exists after all
		}
		if d := Distance(word, c); d < best {
			best, found = d, c
		}
	}
	return found
}

// Distance returns the number of letters to insert, delete or replace, or of neighbours to swap, to get from a to b.
func Distance(a, b string) int {
	two, one := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}
