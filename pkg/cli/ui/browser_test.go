package ui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

var screenshots = flag.String("screenshots", "", "write screenshots of the pages into this directory")

// waits is the time that a page may take to show what a test expects.
const waits = time.Minute

// tab is a tab of a browser.
type tab struct {
	*testing.T
	ctx context.Context
}

// chromium is Debian's chromium, which runs for all tests from the first that needs it. quit ends it.
var (
	chromium = sync.OnceValues(startChromium)
	quit     = func() error { return nil }
)

func startChromium() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("ignore-certificate-errors", true), chromedp.WindowSize(1280, 900), chromedp.UserDataDir(dir),
		chromedp.Flag("lang", "en"))
	allocated, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocated)
	quit = func() error {
		err := chromedp.Cancel(ctx)
		free()
		return errors.Join(err, os.RemoveAll(dir))
	}
	return ctx, chromedp.Do(ctx) // which starts it
}

// browser opens a tab of a profile of its own, or skips the test where there is no chromium. Whatever the page or its
// scripts complain of fails the test.
func browser(t *testing.T) *tab {
	t.Helper()
	if racing && testing.Short() {
		t.Skip("a browser is tested without the race detector: its pages would come three times as slowly")
	}
	parent, err := chromium()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("there is no chromium: apt-get install chromium")
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(stop)
	return (&tab{t, ctx}).listen()
}

// another opens another tab of the browser.
func (b *tab) another() *tab {
	b.Helper()
	ctx, stop := chromedp.NewContext(b.ctx)
	b.Cleanup(stop)
	return (&tab{b.T, ctx}).listen()
}

// listen fails the test for what a page complains of.
func (b *tab) listen() *tab {
	b.Helper()
	if err := chromedp.Do(b.ctx, command(log.Enable, cdp.Empty{})); err != nil { // the first call has no end
		b.Fatal(err)
	}
	if err := chromedp.Listen(b.ctx, func(e any) {
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			b.Errorf("a script failed: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "401 (Unauthorized)") {
				b.Errorf("the page complains: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	}); err != nil {
		b.Fatal(err)
	}
	return b
}

// command is a command of the browser's protocol.
func command[P any](c cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, stop := context.WithTimeout(b.ctx, waits)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// open opens a page.
func (b *tab) open(url string) { b.Helper(); b.do(chromedp.Navigate(url)) }

// until waits for an expression of the page to be true.
func (b *tab) until(expression string) {
	b.Helper()
	controlplane.EventuallyWithin(b.T, waits, func() error {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](expression))
		if err == nil && !ok {
			at, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`location.href + " " + document.querySelector("#search")?.value`))
			err = fmt.Errorf("not yet: %s, at %s", expression, at)
		}
		return err // also while another page comes
	})
}

// text returns the value of an expression of the page.
func (b *tab) text(expression string) string {
	b.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return text
}

// screen sets the size of the screen.
func (b *tab) screen(width int64) {
	b.Helper()
	b.do(command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: 800, DeviceScaleFactor: 1, Mobile: width < 500,
	}))
}

// TestBrowser: the link lets the browser in, the map is used by keyboard, changes come by themselves, eight tabs are
// live at the same time, and nothing breaks the policy for scripts and styles.
func TestBrowser(t *testing.T) {
	b := browser(t)
	s := newSite(t, "")
	s.scene(t, " "+hostile)
	b.open(s.at + Link(s.server.Token(), "/pool/blue"))
	b.until(`location.pathname == "/pool/blue" && document.querySelector("#live")?.className == "on"`)
	b.do(chromedp.Focus(chromedp.CSS(`.cells a[href="/ip/10.1.0.20"]`)), chromedp.KeyEvent(kb.ArrowRight))
	if at := b.text(`document.activeElement.getAttribute("href") + " " + document.getElementById("at").textContent`); at !=
		"/ip/10.1.0.21 10.1.0.21 shop/web-1" {
		t.Errorf("the arrow leads to %q", at)
	}
	s.make(t, held("10.1.0.150", "blue", "10.0.0.12", "shop/late-0"))
	b.until(`document.querySelector('.cells a[href="/ip/10.1.0.150"]')?.title == "10.1.0.150 shop/late-0"`)
	if focus := b.text(`document.activeElement.getAttribute("href")`); focus != "/ip/10.1.0.21" {
		t.Errorf("the focus is on %q after a change", focus)
	}
	b.do(chromedp.KeyEvent("/"))
	if at := b.text(`document.activeElement.id`); at != "search" {
		t.Errorf("/ leads to %q", at)
	}
	b.text(`document.activeElement.value = ""`) // the protocol sends the character whatever became of the key
	b.do(chromedp.SendKeys(chromedp.CSS("#search"), "late-0\r"))
	b.until(`location.pathname == "/ip/10.1.0.150"`)
	b.text(`history.back(), ""`) // the driver's own way waits for a page to load, and this one was kept
	b.until(`location.pathname == "/pool/blue"`)

	tabs := []*tab{b}
	for range 7 {
		other := b.another()
		other.open(s.at + "/pool/blue")
		tabs = append(tabs, other)
	}
	s.make(t, held("10.1.0.151", "blue", "10.0.0.12", "shop/late-1"))
	for _, one := range tabs {
		one.until(`document.querySelector('.cells a[href="/ip/10.1.0.151"]')?.title == "10.1.0.151 shop/late-1"`)
	}
}

// TestBrowserLogin: a user logs in by a token in the form that any page shows, is led to that page, which is live, and
// logs out.
func TestBrowserLogin(t *testing.T) {
	b := browser(t)
	p := newPages(t, certified(t))
	s := &site{Client: p.Client}
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0))
	b.open(p.at + "/pool/blue")
	b.do(chromedp.SendKeys(chromedp.CSS(`input[name="token"]`), p.user(t, "pages-browser", "bcsnet-viewer", "")+"\r"))
	b.until(`location.pathname == "/pool/blue" && document.querySelector("#live")?.className == "on"`)
	if kept := b.text(`document.cookie + location.href`); strings.Contains(kept, sessionCookie) || strings.Contains(kept, "token") {
		t.Errorf("scripts see %q", kept)
	}
	s.make(t, held("10.1.0.20", "blue", "10.0.0.11", "shop/web-0"))
	b.until(`document.querySelector('.cells a[href="/ip/10.1.0.20"]')?.title == "10.1.0.20 shop/web-0"`)
	b.do(chromedp.Click(chromedp.CSS(".user button")))
	b.until(`location.pathname == "/" && document.querySelector('input[name="token"]') != null`)
}

// TestStale: a page whose pool is gone says at the top that it is not live, and why.
func TestStale(t *testing.T) {
	b := browser(t)
	s := newSite(t, "")
	blue := pool("blue", "10.1.0.0", 24, 253, 1, 0)
	s.make(t, blue)
	b.open(s.at + Link(s.server.Token(), "/pool/blue"))
	b.until(`location.pathname == "/pool/blue" && document.querySelector("#live")?.className == "on"`)
	b.until(`document.querySelector("#stale").hidden`)
	s.drop(t, blue)
	b.until(`!document.querySelector("#stale").hidden &&
		document.querySelector("#stale").textContent.includes("there is no pool blue")`)
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0))
	b.until(`document.querySelector("#stale").hidden && document.querySelector("#live").className == "on"`)
}

// TestStorm: a page is used by keyboard while 1,000 changes come, and shows the last of them.
func TestStorm(t *testing.T) {
	b := browser(t)
	s := newSite(t, "")
	s.make(t, pool("blue", "10.1.0.0", 24, 253, 1, 0))
	b.open(s.at + Link(s.server.Token(), "/pool/blue"))
	b.until(`location.pathname == "/pool/blue" && document.querySelector("#live")?.className == "on"`)
	b.do(chromedp.Focus(chromedp.CSS(`.cells a[href="/ip/10.1.0.20"]`)))
	var storm sync.WaitGroup
	storm.Go(func() { s.storm(t, 1000) })
	for i := range 50 {
		b.do(chromedp.KeyEvent(kb.ArrowRight))
		if want, at := fmt.Sprintf("/ip/10.1.0.%d", 21+i), b.text(`document.activeElement.getAttribute("href")`); at != want {
			t.Errorf("arrow %d leads to %s, want %s", i, at, want)
		}
	}
	storm.Wait()
	b.until(`document.querySelector('.cells a[href="/ip/10.1.0.200"]')?.title == "10.1.0.200 shop/storm-999"`)
}

// axe is the checker of accessibility, by npm.
const axe = "axe-core@4.11.0"

// TestAccessible: no page has a finding of axe in light. In dark, a page of each kind has none about colours.
func TestAccessible(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("there is no npm: apt-get install npm")
	}
	b := browser(t)
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), npm, "install", "--prefix", dir, "--no-save", "--no-audit", "--no-fund",
		"--ignore-scripts", axe)
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm does not get %s: %v %s", axe, err, out)
	}
	script, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "")
	s.scene(t, "")
	b.open(s.at + Link(s.server.Token(), "/"))
	b.until(`location.pathname == "/"`)
	all := slices.Sorted(maps.Keys(scenes()))
	kinds := slices.CompactFunc(slices.Clone(all), func(a, b string) bool {
		return strings.FieldsFunc(a+"/x", notWord)[0] == strings.FieldsFunc(b+"/x", notWord)[0]
	})
	for _, one := range []struct {
		scheme, rules string
		paths         []string
	}{{"light", "{}", all}, {"dark", `{runOnly: ["color-contrast"]}`, kinds}} {
		b.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: one.scheme}},
		}))
		for _, path := range one.paths {
			b.open(s.at + path)
			b.text(string(script) + `; delete window.found; axe.run(` + one.rules + `).then((r) => { window.found = r.violations.map((v) =>
				v.id + ": " + v.nodes.map((n) => n.html).slice(0, 3).join(" ")).join("\n"); }); ""`)
			b.until(`window.found !== undefined`)
			if found := b.text(`window.found`); found != "" {
				t.Errorf("%s, %s:\n%s", path, one.scheme, found)
			}
		}
	}
}

// notWord ends a word of a path.
func notWord(c rune) bool { return c == '/' || c == '?' }

// TestScreenshots: each page fits 1280 and 360 pixels, also without scripts, and is drawn for the documents if that is
// asked for.
func TestScreenshots(t *testing.T) {
	b := browser(t)
	s := newSite(t, "")
	s.scene(t, "")
	s.foresees(t, map[string]float64{"blue": 9, "lab": 2, "large": 0, "edge": 0})
	b.open(s.at + Link(s.server.Token(), "/"))
	b.until(`location.pathname == "/"`)
	for _, one := range []struct{ name, path string }{
		{"pools", "/"}, {"pool", "/pool/blue"}, {"large", "/pool/large"}, {"address", "/ip/10.1.0.20"},
		{"host", "/host/10.0.0.99"}, {"namespace", "/namespace/shop"}, {"network", "/network/prod"}, {"problems", "/problems"},
		{"claim", "/claim/shop/db"}, {"history", "/history/host/10.0.0.12"},
		{"why", "/why?pod=shop/web-0"}, {"search", "/search?q=web-"},
	} {
		for _, width := range []int64{1280, 360} {
			b.screen(width)
			b.open(s.at + one.path)
			if wide := b.text("`${document.documentElement.scrollWidth}`"); wide != fmt.Sprint(width) {
				t.Errorf("%s is %s pixels wide on a screen of %d", one.path, wide, width)
			}
			if name := one.name + map[int64]string{360: "-phone"}[width]; width > 360 || one.name == "pool" {
				b.shoot(name)
			}
		}
	}
	b.screen(1280)
	b.do(command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}},
	}))
	b.open(s.at + "/pool/blue?lang=zh")
	b.shoot("pool-dark-zh")
	b.do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
	b.open(s.at + "/pool/blue?lang=en")
	title, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS("h1")))
	if err != nil || !strings.Contains(title, "Pool blue") {
		t.Errorf("without scripts the page is called %q: %v", title, err)
	}
}

// shoot draws what the browser shows, where that is asked for.
func (b *tab) shoot(name string) {
	b.Helper()
	if *screenshots == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, "ui-"+name+".png"), png, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}
