// Package explain puts a refusal into words: what is refused, which object is in the way, and what to do next. Its
// callers give the kind of the refusal and the facts: objects and counts. The package has the texts and the commands
// that they suggest. It decides nothing and knows no index.
package explain
