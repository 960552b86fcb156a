package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
)

// measuredClicks is the number of measured clicks.
const measuredClicks = 100

// clickScript makes a page note the milliseconds from a click until it is drawn after that.
const clickScript = `window.took = []; addEventListener("click", (e) => requestAnimationFrame(() => setTimeout(() =>
	took.push(performance.now() - e.timeStamp)))); ""`

// clicks measures how long a browser takes to answer a click on the page of a pool whose addresses are taken and given
// back meanwhile. It is left out without chromium.
func (b *bench) clicks(ctx context.Context, operator string) error {
	path, err := exec.LookPath("chromium")
	if err != nil {
		say("clicks: left out, because there is no chromium")
		return nil
	}
	s := &site{}
	link, err := s.start(ctx, operator)
	if err != nil {
		return err
	}
	allocated, free := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox)...)
	defer free()
	tab, stop := chromedp.NewContext(allocated)
	defer stop()
	return errors.Join(b.clicked(tab, s, link), s.close())
}

// clicked measures clicks in a tab.
func (b *bench) clicked(tab context.Context, s *site, link string) error {
	say("clicks: %d while %d callers allocate", measuredClicks, viewedBy)
	page := s.at.String() + "/pool/" + viewedNetwork
	// The link answers with a page that goes on by itself. Another navigation before that would end with an error.
	overview := chromedp.WaitReady(chromedp.CSS("#search"))
	if err := chromedp.Do(tab, chromedp.Navigate(s.at.String()+link), overview, chromedp.Navigate(page)); err != nil {
		return err
	}
	if _, err := chromedp.Run(tab, chromedp.Evaluate[string](clickScript)); err != nil {
		return err
	}
	var r result
	group, ctx := errgroup.WithContext(tab)
	group.Go(func() (err error) {
		of := service{b: b, kind: "clicks", network: viewedNetwork}
		r, err = load(ctx, viewedBy, b.slice, cycle{timed: of.add, after: of.del})
		return err
	})
	group.Go(func() error {
		every := time.NewTicker(b.slice / measuredClicks)
		defer every.Stop()
		for range measuredClicks {
			<-every.C
			if err := chromedp.Do(ctx, chromedp.MouseClickXY(300, 60)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	took, err := chromedp.Run(tab, chromedp.Evaluate[[]float64]("took"))
	if err != nil || len(took) == 0 {
		return errors.Join(err, fmt.Errorf("clicks: %d of %d reached the page", len(took), measuredClicks))
	}
	var all []time.Duration
	for _, t := range took {
		all = append(all, time.Duration(t*float64(time.Millisecond)))
	}
	b.report.click(2*float64(r.ops)/b.slice.Seconds(), all)
	return nil
}
