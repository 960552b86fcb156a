// Package explain puts a refusal into words: what is refused, which object is in the way, and what to do next. The
// index says which kind of refusal it is, with the names and counts; the texts, and the commands that they name, are
// here. It decides nothing and knows no index.
package explain
