package printer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// customColumns prints the fields of -o custom-columns. kubectl's own printer would import all of kubectl get.
type customColumns struct{ table *GrowingTable[map[string]any] }

var _ printers.ResourcePrinter = customColumns{}

const (
	formatColumns     = "custom-columns="
	formatColumnsFile = "custom-columns-file="
)

// customPrinter parses the value of -o. It returns nil for other formats.
func customPrinter(format string, headers bool) (printers.ResourcePrinter, error) {
	var names, paths []string
	if spec, ok := strings.CutPrefix(format, formatColumns); ok {
		for part := range strings.SplitSeq(spec, ",") {
			name, path, both := strings.Cut(part, ":")
			if !both || name == "" {
				return nil, fmt.Errorf("%q is not NAME:FIELD", part)
			}
			names, paths = append(names, name), append(paths, path)
		}
	} else if path, ok := strings.CutPrefix(format, formatColumnsFile); ok {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		first, second, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		if names, paths = strings.Fields(first), strings.Fields(second); len(names) != len(paths) || len(names) == 0 {
			return nil, errors.New(path + " is not a line of names and one of as many fields")
		}
	} else {
		return nil, nil
	}
	t := &GrowingTable[map[string]any]{Table: Table[map[string]any]{Headers: headers, empty: "<none>"}}
	for i := range names {
		cell, err := fieldCell(paths[i])
		if err != nil {
			return nil, fmt.Errorf("column %s: %q: %w", names[i], paths[i], err)
		}
		t.Columns = append(t.Columns, Column[map[string]any]{Name: names[i], Cell: cell})
	}
	return customColumns{t}, nil
}

// fieldCell returns the cell function for a field. Several values are joined by commas.
func fieldCell(text string) (func(map[string]any) string, error) {
	path, err := fieldPath(text)
	if err != nil {
		return nil, err
	}
	return func(object map[string]any) string {
		found, err := path.FindResults(object)
		if err != nil { // a path that does not fit this object
			return ""
		}
		var out []string
		for _, values := range found {
			for _, v := range values {
				out = append(out, fmt.Sprint(v.Interface()))
			}
		}
		return strings.Join(out, ",")
	}, nil
}

// PrintObj prints an object, or a list of them.
func (c customColumns) PrintObj(obj runtime.Object, w io.Writer) error {
	all := []runtime.Object{obj}
	if meta.IsListType(obj) {
		var err error
		if all, err = meta.ExtractList(obj); err != nil {
			return err
		}
	}
	rows := make([]map[string]any, 0, len(all))
	for _, o := range all {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		rows = append(rows, content)
	}
	return c.table.Write(w, rows)
}
