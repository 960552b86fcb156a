package ui

import (
	"net/url"
	"strconv"
)

// perPage is the number of rows of a table on one page.
const perPage = 200

// rows are the rows of a table that a page shows. The query parameter with the table's name says which.
type rows[T any] struct {
	Shown            []T
	All, Page, Pages int
	name             string
	at               *url.URL
}

// rowsOf returns the rows of a table that a request asks for; the first ones if it asks for none.
func rowsOf[T any](q *request, name string, all []T) rows[T] {
	r := rows[T]{All: len(all), Pages: max(1, (len(all)+perPage-1)/perPage), name: name, at: q.URL}
	r.Page, _ = strconv.Atoi(q.URL.Query().Get(name)) // what is no number is the first page
	r.Page = max(1, min(r.Page, r.Pages))
	r.Shown = all[(r.Page-1)*perPage : min(len(all), r.Page*perPage)]
	return r
}

// Before returns the address of the page with the rows before these; empty if these are the first.
func (r rows[T]) Before() string { return r.to(r.Page - 1) }

// After returns the address of the page with the rows after these; empty if these are the last.
func (r rows[T]) After() string { return r.to(r.Page + 1) }

func (r rows[T]) to(page int) string {
	if page < 1 || page > r.Pages {
		return ""
	}
	values := r.at.Query()
	values.Del(r.name)
	values.Del("lang")
	if page > 1 {
		values.Set(r.name, strconv.Itoa(page))
	}
	return r.at.EscapedPath() + "?" + values.Encode() + "#" + r.name
}
