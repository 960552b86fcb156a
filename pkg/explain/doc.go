// Package explain puts a refusal into words: what is refused, which object is in the way, and what to do next. Who
// refuses names the kind of the refusal and its facts: objects and counts. The texts, and the commands of the command
// line that they name, are here. It decides nothing and knows no index.
package explain
