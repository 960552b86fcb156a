package printer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/terminal"
)

// Output is the flag -o. Tables are our own; all other formats are kubectl's.
type Output struct {
	Flags     *genericclioptions.PrintFlags
	formats   []string
	noHeaders bool
	Sort      SortBy
	Watch     bool
	// Printer prints objects; nil for tables and other own formats. Validate sets it.
	Printer printers.ResourcePrinter
}

// ObjectFormats lists kubectl's formats.
func ObjectFormats() []string {
	return []string{
		"json", "yaml", "name", "jsonpath=", "jsonpath-file=", "go-template=", "go-template-file=",
		formatColumns, formatColumnsFile,
	}
}

// FormatCSV is the format for spreadsheets and other programs.
const FormatCSV = "csv"

func tableFormats() []string { return []string{"table", "wide", FormatCSV} }

// viewFormats lists the formats for views, which have no name in the cluster.
func viewFormats() []string {
	return slices.DeleteFunc(ObjectFormats(), func(f string) bool { return f == "name" })
}

// AddTo adds the flags to a command that lists objects. The default is a table.
func (o *Output) AddTo(cmd *cobra.Command) {
	o.Add(cmd, append(tableFormats(), ObjectFormats()...))
	o.AddNoHeaders(cmd)
}

// AddNoHeaders adds the flag --no-headers to a command.
func (o *Output) AddNoHeaders(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the line of column names")
}

// AddToChange adds the flag to a command that changes objects. By default it prints no objects.
func (o *Output) AddToChange(cmd *cobra.Command) { o.Add(cmd, ObjectFormats()) }

// AddToView adds the flag to a command that shows a view, which is not an object of the cluster and has no name.
func (o *Output) AddToView(cmd *cobra.Command, more ...string) {
	o.Add(cmd, append(viewFormats(), more...))
}

// AddToViews adds the flags for a list of such views. A table is the default.
func (o *Output) AddToViews(cmd *cobra.Command) {
	o.Add(cmd, append(tableFormats(), viewFormats()...))
	o.AddNoHeaders(cmd)
}

// Add adds the flag --output with these formats.
func (o *Output) Add(cmd *cobra.Command, formats []string) {
	o.Flags, o.formats = genericclioptions.NewPrintFlags(""), formats
	o.Flags.AddFlags(cmd)
	cmd.Flag("output").Usage = "print `FORMAT`: " + strings.Join(formats, ", ")
	for _, name := range []string{"template", "allow-missing-template-keys", "show-managed-fields"} {
		cmd.Flag(name).Hidden = true // for users of kubectl; others need no help on it
	}
	app.Complete(cmd, "output", formats...)
}

// AddSort adds the flag --sort-by to a list. example is a field of its objects.
func (o *Output) AddSort(cmd *cobra.Command, example string) { o.Sort.addTo(cmd, example) }

// Validate finds the printer.
func (o *Output) Validate() error {
	if err := o.Sort.validate(); err != nil {
		return err
	}
	if o.Watch && o.CSV() {
		return app.Usagef("-o csv does not go with --watch").WithHint("without --watch the list is printed once")
	}
	if o.Watch && o.Sort.On() {
		return app.Usagef("--sort-by does not go with --watch").WithHint("without --watch the list is sorted once")
	}
	if f := *o.Flags.OutputFormat; slices.Contains(o.formats, f) && !slices.Contains(ObjectFormats(), f) ||
		f == "" && *o.Flags.TemplatePrinterFlags.TemplateArgument == "" {
		return nil
	}
	var err error
	if o.Printer, err = customPrinter(*o.Flags.OutputFormat, !o.noHeaders); o.Printer == nil && err == nil {
		o.Printer, err = o.Flags.ToPrinter()
	}
	var unknown genericclioptions.NoCompatiblePrinterError
	switch {
	case errors.As(err, &unknown), o.Names() && !slices.Contains(o.formats, "name"):
		return app.Usagef("there is no output format %q", *o.Flags.OutputFormat).
			WithHint("the formats are %s", strings.Join(o.formats, ", "))
	case err != nil:
		return app.Usagef("output format: %v", err)
	}
	return nil
}

// Given reports whether -o was given.
func (o *Output) Given() bool { return *o.Flags.OutputFormat != "" }

// CSV reports whether tables are printed as comma-separated values.
func (o *Output) CSV() bool { return *o.Flags.OutputFormat == FormatCSV }

func (o *Output) wide() bool { return *o.Flags.OutputFormat == "wide" || o.CSV() }

// Some formats a cell of names: the first few as kubectl does, or all of them with -o wide.
func (o *Output) Some(names []string, few int) string {
	if n := len(names) - few; n > 0 && !o.wide() {
		return fmt.Sprintf("%s + %d more...", strings.Join(names[:few], ","), n)
	}
	return strings.Join(names, ",")
}

// Names reports whether the format is -o name.
func (o *Output) Names() bool { return *o.Flags.OutputFormat == "name" }

// InParts reports whether the format prints objects independently, so that a list can be printed before it is complete.
func (o *Output) InParts() bool {
	_, columns := o.Printer.(customColumns)
	return o.Printer == nil || columns || o.Names()
}

// Object prints one object if -o is given.
func (o *Output) Object(w io.Writer, obj runtime.Object) error {
	if o.Printer == nil || obj == nil {
		return nil
	}
	b := bufio.NewWriter(o.stream(w))
	if err := o.Printer.PrintObj(obj, b); err != nil {
		return err
	}
	return b.Flush()
}

// stream returns the writer for objects. JSON may escape control characters without changing the meaning, so it may use
// the Writer w. Other formats go to programs unchanged; only a terminal gets them escaped.
func (o *Output) stream(w io.Writer) io.Writer {
	_, columns := o.Printer.(customColumns)
	if columns || *o.Flags.OutputFormat == "json" || terminal.Is(terminal.Raw(w)) {
		return w
	}
	return terminal.Raw(w)
}

// NewView returns an object for -o json and similar formats of which the cluster has no kind: it is a view.
func NewView(kind string, fields map[string]any) *unstructured.Unstructured {
	fields["apiVersion"], fields["kind"] = app.ProgramName+"/v1", kind
	return &unstructured.Unstructured{Object: fields}
}

// NewViews returns a list of views, one for each row of a table.
func NewViews[T any](kind string, rows []T, fields func(T) map[string]any) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{Object: NewView(kind+"List", map[string]any{}).Object}
	for _, r := range rows {
		l.Items = append(l.Items, *NewView(kind, fields(r)))
	}
	return l
}

// List prints objects as one list, in kubectl's form.
func (o *Output) List(w io.Writer, items []unstructured.Unstructured) error {
	l := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}, Items: items}
	return o.Object(w, l)
}
