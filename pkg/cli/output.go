package cli

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
)

// output is the flag -o. Tables are ours, everything else is printed as kubectl does.
type output struct {
	flags     *genericclioptions.PrintFlags
	formats   []string
	noHeaders bool
	sort      sortBy
	watch     bool
	// printer is nil where objects are not printed as such; validate sets it.
	printer printers.ResourcePrinter
}

// objectFormats are those of kubectl.
func objectFormats() []string {
	return []string{
		"json", "yaml", "name", "jsonpath=", "jsonpath-file=", "go-template=", "go-template-file=",
		formatColumns, formatColumnsFile,
	}
}

// viewFormats are those for what has no name in the cluster.
func viewFormats() []string {
	return slices.DeleteFunc(objectFormats(), func(f string) bool { return f == "name" })
}

// addTo gives a command that lists things its flags: a table is the default.
func (o *output) addTo(cmd *cobra.Command) {
	o.add(cmd, append([]string{"table", "wide"}, objectFormats()...))
	o.addNoHeaders(cmd)
}

func (o *output) addNoHeaders(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "leave out the line of column names")
}

// addToChange gives a command that changes objects the flag: by default it prints none.
func (o *output) addToChange(cmd *cobra.Command) { o.add(cmd, objectFormats()) }

// addToView gives a command the flag that shows what is no object of the cluster: such a view has no name.
func (o *output) addToView(cmd *cobra.Command, more ...string) {
	o.add(cmd, append(viewFormats(), more...))
}

// addToViews is for a list of such views: a table is the default.
func (o *output) addToViews(cmd *cobra.Command) {
	o.add(cmd, append([]string{"table", "wide"}, viewFormats()...))
	o.addNoHeaders(cmd)
}

func (o *output) add(cmd *cobra.Command, formats []string) {
	o.flags, o.formats = genericclioptions.NewPrintFlags(""), formats
	o.flags.AddFlags(cmd)
	cmd.Flag("output").Usage = "print `FORMAT`: " + strings.Join(formats, ", ")
	for _, name := range []string{"template", "allow-missing-template-keys", "show-managed-fields"} {
		cmd.Flag(name).Hidden = true // known to users of kubectl; the help is for the others
	}
	complete(cmd, "output", formats...)
}

// addSort gives a list the flag --sort-by; example is a field of its objects.
func (o *output) addSort(cmd *cobra.Command, example string) { o.sort.addTo(cmd, example) }

// validate finds the printer.
func (o *output) validate() error {
	if err := o.sort.validate(); err != nil {
		return err
	}
	if o.watch && o.sort.on() {
		return usagef("--sort-by does not go with --watch").withHint("without --watch the list is sorted once")
	}
	if f := *o.flags.OutputFormat; slices.Contains(o.formats, f) && !slices.Contains(objectFormats(), f) ||
		f == "" && *o.flags.TemplatePrinterFlags.TemplateArgument == "" {
		return nil
	}
	var err error
	if o.printer, err = customPrinter(*o.flags.OutputFormat, !o.noHeaders); o.printer == nil && err == nil {
		o.printer, err = o.flags.ToPrinter()
	}
	var unknown genericclioptions.NoCompatiblePrinterError
	switch {
	case errors.As(err, &unknown), o.names() && !slices.Contains(o.formats, "name"):
		return usagef("there is no output format %q", *o.flags.OutputFormat).
			withHint("the formats are %s", strings.Join(o.formats, ", "))
	case err != nil:
		return usagef("output format: %v", err)
	}
	return nil
}

// given is true when -o was given.
func (o *output) given() bool { return *o.flags.OutputFormat != "" }

func (o *output) wide() bool { return *o.flags.OutputFormat == "wide" }

// some is a cell of names: the first few as kubectl writes them, or all with -o wide.
func (o *output) some(names []string, few int) string {
	if n := len(names) - few; n > 0 && !o.wide() {
		return fmt.Sprintf("%s + %d more...", strings.Join(names[:few], ","), n)
	}
	return strings.Join(names, ",")
}

// names is true for -o name.
func (o *output) names() bool { return *o.flags.OutputFormat == "name" }

// inParts is true for formats where the objects of a list are printed one by one, so that they can be
// printed before all are known.
func (o *output) inParts() bool {
	_, columns := o.printer.(customColumns)
	return o.printer == nil || columns || o.names()
}

// object prints one object where -o asks for it.
func (o *output) object(w io.Writer, obj runtime.Object) error {
	if o.printer == nil || obj == nil {
		return nil
	}
	b := bufio.NewWriter(w)
	if err := o.printer.PrintObj(obj, b); err != nil {
		return err
	}
	return b.Flush()
}

// list prints objects as one list, in the form that kubectl gives it.
func (o *output) list(w io.Writer, items []unstructured.Unstructured) error {
	l := &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
	}, Items: items}
	return o.object(w, l)
}
