package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/bcsnet/bcsnet/test/generated"
)

// Between these marks a page is rewritten.
const (
	begin = "<!-- what ran: written by make test-neighbours -->\n"
	end   = "<!-- end of what ran -->"
)

// page is a page in one language.
type page struct {
	file string
	body func(record) string
}

func pages() []page {
	return []page{
		{"docs/neighbours.md", english},
		{"docs/zh/neighbours.md", chinese},
	}
}

func writePages(r record) error {
	var errs []error
	for _, p := range pages() {
		old, err := os.ReadFile(p.file)
		if err == nil {
			var text string
			if text, err = generated.Between(string(old), begin, end, p.body(r)); err == nil {
				err = os.WriteFile(p.file, []byte(text), 0o644)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// count returns the number of tests with a result.
func (p ran) count(result string) (n int) {
	for _, t := range p.Tests {
		if t.Result == result {
			n++
		}
	}
	return n
}

// row returns the program's row in the table of either language, from the version on.
func (p ran) row() string {
	return fmt.Sprintf("%s | %d | %d | %d | %s |\n", cmp.Or(p.Version, "–"),
		p.count("pass"), p.count("skip"), p.count("fail"), p.Day)
}

func english(r record) string {
	var b strings.Builder
	b.WriteString("| program | version | passed | skipped | failed | day |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, p := range r.Programs {
		b.WriteString("| " + p.Name + " | " + p.row())
	}
	return b.String()
}

func chinese(r record) string {
	var b strings.Builder
	b.WriteString("| 程序 | 版本 | 通过 | 跳过 | 失败 | 日期 |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, p := range programs() {
		if i := slices.IndexFunc(r.Programs, func(o ran) bool { return o.Name == p.name }); i >= 0 {
			b.WriteString("| " + p.chinese + " | " + r.Programs[i].row())
		}
	}
	return b.String()
}
