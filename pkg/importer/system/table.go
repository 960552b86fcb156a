package system

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bcsnet/bcsnet/pkg/importer"
	"github.com/bcsnet/bcsnet/pkg/internal/humanize"
)

// table takes over addresses from a table of a network team.
func table() System {
	return System{
		Name: "csv", Title: "a table (NetBox, phpIPAM)", Files: true, Table: true,
		About: `Read are tables with a heading, separated by commas, semicolons or tabs, as
NetBox and phpIPAM export them. A column address, ip_address or ip is needed;
status, dns_name, hostname, description and tenant become the reason. Each
address that lies in a pool is reserved, so that no pod gets what an appliance
has. Rows whose status is available, free or deprecated are left out.`,
		Example: `  bcsnetctl import csv --file netbox_ip_addresses.csv --dry-run=client
  bcsnetctl import csv --file subnet-a.csv --file subnet-b.csv --yes`,
		Read: readTables,
	}
}

func readTables(_ context.Context, from Source) (importer.Rows, error) {
	r := rows{importer.Rows{System: "csv"}}
	for _, path := range from.Files {
		if err := r.table(path); err != nil {
			return r.Rows, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r.Rows, nil
}

// table adds the rows of a file.
func (r *rows) table(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 64<<10)
	head, err := in.Peek(3)
	switch {
	case err == nil && bytes.Equal(head, []byte("\xef\xbb\xbf")):
		_, _ = in.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return errors.New("it is UTF-16: convert the file: iconv -f UTF-16 -t UTF-8")
	}
	line, _ := in.Peek(4096)
	rd := csv.NewReader(in)
	rd.Comma, rd.FieldsPerRecord, rd.TrimLeadingSpace = separator(line), -1, true
	heading, err := rd.Read()
	if err != nil {
		return fmt.Errorf("it has no heading: %w", err)
	}
	columns := map[string]int{}
	for i, name := range heading {
		columns[strings.NewReplacer(" ", "_", "-", "_").Replace(strings.ToLower(strings.TrimSpace(name)))] = i
	}
	free := 0
	for {
		record, err := rd.Read()
		if errors.Is(err, io.EOF) {
			if free > 0 {
				r.left(path, "%s not in use", humanize.Plural(free, "row")+humanize.OneOr(free, " is", " are"))
			}
			return nil
		}
		if err != nil {
			return err
		}
		number, _ := rd.FieldPos(0)
		if !utf8.ValidString(strings.Join(record, "")) {
			return fmt.Errorf("line %d is not UTF-8: convert the file: iconv -f GB18030 -t UTF-8, or from LATIN1",
				number)
		}
		value := func(names ...string) string {
			for _, name := range names {
				if i, ok := columns[name]; ok && i < len(record) && record[i] != "" {
					return strings.TrimSpace(record[i])
				}
			}
			return ""
		}
		if slices.Contains(unused(), strings.ToLower(value(statusColumns()...))) {
			free++
			continue
		}
		if err := r.record(fmt.Sprintf("line %d", number), value); err != nil {
			return err
		}
	}
}

// statusColumns returns the columns that say how an address is used, in order of preference.
func statusColumns() []string { return []string{"status", "state", "ip_state", "tag"} }

// unused returns the values of these columns for an address that nobody uses.
func unused() []string { return []string{"available", "free", "deprecated"} }

// record adds the address of one line; value returns the first of some columns that is not empty.
func (r *rows) record(line string, value func(names ...string) string) error {
	text := value("address", "ip_address", "ip", "ip_addr")
	if text == "" {
		if value("address", "ip_address", "ip", "ip_addr", "status", "description", "hostname", "dns_name") == "" {
			return nil
		}
		return fmt.Errorf("%s has no address: a column address, ip_address or ip is needed", line)
	}
	reason := cmp.Or(value("dns_name", "hostname", "name", "description"), value(statusColumns()...), "in use")
	reason = strings.Join(strings.Fields(reason+" "+value("tenant")), " ")
	r.add(text, importer.Address{Object: line, State: importer.Kept, Reason: reason})
	return nil
}

// separator returns the one of comma, semicolon and tab that the first line has most often.
func separator(text []byte) rune {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	best := ','
	for _, c := range ";\t" {
		if strings.Count(string(line), string(c)) > strings.Count(string(line), string(best)) {
			best = c
		}
	}
	return best
}
