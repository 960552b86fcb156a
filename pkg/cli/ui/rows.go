package ui

import (
	"net/url"
	"strconv"
)

// perPage is the number of rows of a table on one page.
const perPage = 200

// rows has the rows of a table on a page. The query parameter with the table's name chooses the page.
type rows[T any] struct {
	Shown            []T
	All, Page, Pages int
	name             string
	at               *url.URL
}

// rowsOf returns the requested rows of a table; by default the first page.
func rowsOf[T any](q *request, name string, all []T) rows[T] {
	r := rows[T]{All: len(all), Pages: max(1, (len(all)+perPage-1)/perPage), name: name, at: q.URL}
	r.Page, _ = strconv.Atoi(q.URL.Query().Get(name)) // an invalid number means the first page
	r.Page = max(1, min(r.Page, r.Pages))
	r.Shown = all[(r.Page-1)*perPage : min(len(all), r.Page*perPage)]
	return r
}

// Before returns the path of the previous page of rows; empty on the first page.
func (r rows[T]) Before() string { return r.to(r.Page - 1) }

// After returns the path of the next page of rows; empty on the last page.
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
