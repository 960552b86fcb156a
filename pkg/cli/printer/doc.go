// Package printer writes results to standard output: output flags, tables, trees, sorting, custom columns and lists
// that are printed in parts. It knows no kind of object and sends no request.
package printer
