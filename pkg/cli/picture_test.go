//go:build linux

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// screenWidth is the width in columns of the terminal on pictures.
const screenWidth = 112

// screen COMMAND... runs a command on a terminal, with colours, and keeps what that shows for picture.
func (f *fixture) screen(ctx context.Context, ts *testscript.TestScript, args []string) error {
	p, err := openPTY(screenWidth, 40)
	if err != nil {
		return err
	}
	defer p.master.Close()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "LANG=C.UTF-8", "TERM=xterm", rawEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.slave, p.slave, p.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		return err
	}
	p.slave.Close()
	<-p.ended
	file, err := os.OpenFile(ts.MkAbs("screen"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "$ %s\n%s\n", strings.Join(args, " "), strings.ReplaceAll(p.text.String(), "\r\n", "\n"))
	return errors.Join(err, file.Close())
}

// picture FILE checks that a picture of the documents shows what the commands of screen print, but for times. With
// -update it draws the picture again if it does not.
func (f *fixture) picture(_ context.Context, ts *testscript.TestScript, args []string) error {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	screen := strings.TrimSpace(ts.ReadFile("screen"))
	drawn, err := draw(screen)
	if err != nil {
		return err
	}
	path := filepath.Join(root, args[0])
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	diff := cmp.Diff(seen(old), seen(drawn))
	switch {
	case diff == "":
		return nil
	case *update:
		return os.WriteFile(path, drawn, 0o644)
	}
	return fmt.Errorf("%s shows something else than the commands print; to draw it again: go test ./pkg/cli -run "+
		"TestScripts/%s -update (-picture +commands):\n%s", args[0], strings.TrimSuffix(filepath.Base(args[0]), ".svg"), diff)
}

// seen returns the text of a picture, without times.
func seen(picture []byte) string {
	var lines []string
	for _, m := range regexp.MustCompile(`<text [^>]*>(.*)</text>`).FindAllSubmatch(picture, -1) {
		lines = append(lines, html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(m[1]), "")))
	}
	return string(masked([]byte(strings.Join(lines, "\n"))))
}

// The picture, in pixels: a cell of a character, and the space around the text.
const (
	cellWidth, cellHeight = 7.8, 18
	around                = 16
)

// run is text of one colour. Beside those of the terminal there are two of the line that a user types.
type run struct{ text, color string }

// rows returns the rows of a terminal: lines that are too long go on in the next row.
func rows(screen string) (all [][]run, err error) {
	const escapes = "\x1b["
	for line := range strings.SplitSeq(screen, "\n") {
		var runs []run
		if command, is := strings.CutPrefix(line, "$ "); is {
			runs, line = []run{{"$ ", "prompt"}, {command, "command"}}, ""
		}
		for n, part := range strings.Split(line, escapes) {
			color := ""
			if n > 0 {
				code, rest, ok := strings.Cut(part, "m")
				if !ok || code != "0" && colors()[code] == "" {
					return nil, fmt.Errorf("a picture cannot show the escape sequence %q", escapes+part)
				}
				part, color = rest, code
			}
			runs = append(runs, run{part, color})
		}
		var row []run
		left := screenWidth
		for _, r := range runs {
			for text := []rune(r.text); len(text) > 0; {
				if left == 0 {
					all, row, left = append(all, row), nil, screenWidth
				}
				n := min(left, len(text))
				row, text, left = append(row, run{string(text[:n]), r.color}), text[n:], left-n
			}
		}
		all = append(all, row)
	}
	return all, nil
}

// colors are those of the picture, by the codes of a terminal.
func colors() map[string]string {
	return map[string]string{
		"31": "#ff7b72", "32": "#56d364", "33": "#e3b341", "36": "#56d4dd", "prompt": "#8b949e", "command": "#ffffff",
	}
}

// draw draws what a terminal shows: an SVG with a text for each row, of which each run has its place, so that columns
// are straight in any font.
func draw(screen string) ([]byte, error) {
	all, err := rows(screen)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	width, height := 2*around+screenWidth*cellWidth, 2*around+len(all)*cellHeight
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" width="%.0f" height="%d" `+
		`font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" `+
		`fill="#c9d1d9">`+"\n"+`<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+"\n", width, height, width, height)
	for i, row := range all {
		column := 0
		fmt.Fprintf(&b, `<text y="%d" xml:space="preserve">`, around+13+i*cellHeight)
		for _, r := range row {
			fill := ""
			if color := colors()[r.color]; color != "" {
				fill = fmt.Sprintf(" fill=%q", color)
			}
			fmt.Fprintf(&b, `<tspan x="%.1f"%s>%s</tspan>`, around+float64(column)*cellWidth, fill, html.EscapeString(r.text))
			column += utf8.RuneCountInString(r.text)
		}
		b.WriteString("</text>\n")
	}
	b.WriteString("</svg>\n")
	return b.Bytes(), nil
}
