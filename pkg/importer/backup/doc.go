// Package backup is the file that keeps pools, claims and addresses: one JSON object a line. It begins with a line that
// names the format, and ends with one that counts the objects and has the SHA-256 of all lines before it. Objects are
// as the API server stores them, without what only that server knows. The file has no time: two backups of one state
// are equal byte by byte.
package backup
