package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/ui"
	"github.com/bcsnet/bcsnet/test/controlplane"
)

const (
	// smallPools is how many pools there are when pages are measured, beside the large one, the one in blocks, and
	// viewedNetwork, from which addresses are taken while viewers follow its page.
	smallPools    = 197
	viewedNetwork = "bench-viewed"
	// viewers are the streams of viewers.
	viewers = 50
	// viewedBy allocate meanwhile.
	viewedBy = 16
)

// pages measures the pages of bcsnetctl ui, compressed as a browser gets them: of 200 pools, one of which is in 4,096
// blocks and one of 65,536 addresses. Then it measures allocations while viewers follow pages.
func (b *bench) pages(ctx context.Context) error {
	operator, err := b.crowd(ctx)
	if err != nil {
		return err
	}
	if err := b.manyPools(ctx); err != nil {
		return err
	}
	// The pods of the addresses are none of the cluster's, and nobody is to take their addresses back meanwhile.
	before := b.controller
	defer func() { b.controller = before }()
	b.controller, err = b.cp.StartController(ctx,
		controlplane.ControllerOptions{Name: "pages", Args: []string{"--garbage-collection=off"}})
	if err != nil {
		return err
	}
	if _, err := b.networkPool(ctx, viewedNetwork, "10.20.0.0/20"); err != nil {
		return err
	}
	s, err := newSite(ctx, operator)
	if err != nil {
		return err
	}
	return errors.Join(b.loadPages(ctx, s), b.viewed(ctx, s), s.close())
}

// manyPools makes the small pools and the one in blocks.
func (b *bench) manyPools(ctx context.Context) error {
	say("making %d pools and %d blocks", smallPools, owned)
	for i := range smallPools {
		subnet := fmt.Sprintf("10.113.%d.0/24", i)
		if _, err := b.pool(ctx, fmt.Sprintf("bench-page-%d", i), subnet, v1.MaterializeOnDemand); err != nil {
			return err
		}
	}
	split, err := b.pool(ctx, splitNetwork, blocksNetwork, v1.MaterializeOnDemand,
		func(s *v1.BCSNetPoolSpec) { s.BlockSize = blockLength })
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.SetLimit(maxCallers)
	for i := range owned {
		group.Go(func() error {
			_, err := b.filler.CreateBlock(ctx, tenantBlock(split, i, tenant(i)))
			return err
		})
	}
	return group.Wait()
}

// loadPages measures how long pages take, and how large they are.
func (b *bench) loadPages(ctx context.Context, s *site) error {
	for _, one := range []struct {
		path string
		goal time.Duration
	}{
		{"/", time.Second}, {"/pool/" + cliPool, 2 * time.Second}, {"/pool/" + splitNetwork, 0}, {"/ip/10.112.0.20", 0},
		{"/host/" + host(0), 0}, {"/problems", 0},
	} {
		var all []page
		for range b.rounds {
			p, err := s.fetch(ctx, one.path)
			if err != nil {
				return err
			}
			all = append(all, p)
		}
		b.report.page(one.path, all, one.goal)
	}
	return nil
}

// viewed measures allocations of a pool while viewers follow its page and others.
func (b *bench) viewed(ctx context.Context, s *site) error {
	say("allocate: %d callers with %d viewers and without", viewedBy, viewers)
	with, without, err := b.switched(ctx, viewedBy, viewedNetwork, s.watched)
	if err == nil {
		b.report.viewed = append(b.report.viewed, switched(viewedBy, with, without))
	}
	return err
}

// site serves the pages, and has a browser that was let in.
type site struct {
	at      *url.URL
	browser *http.Client
	stop    func() error
	// unwatch ends the streams of the viewers; nil if there are none.
	unwatch func()
}

// newSite serves the pages for the user of a kubeconfig.
func newSite(ctx context.Context, kubeconfig string) (*site, error) {
	a := app.New(app.ProgramName, "bench", genericiooptions.IOStreams{
		In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard,
	})
	*a.Flags.KubeConfig = kubeconfig
	server, err := ui.New(a, func(string) {})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	s := &site{
		at:      &url.URL{Scheme: "http", Host: l.Addr().String()},
		browser: &http.Client{Jar: jar, Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}},
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(serving, l) }()
	s.stop = func() error { stop(); return <-ended }
	if _, err := s.fetch(ctx, ui.Link(server.Token(), "/")); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *site) close() error {
	if s.unwatch != nil {
		s.unwatch()
	}
	return s.stop()
}

// ask sends a request of a browser. The caller closes the body.
func (s *site) ask(ctx context.Context, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.at.String()+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := s.browser.Do(r)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.Join(fmt.Errorf("%s answers %s", path, answer.Status), answer.Body.Close())
	}
	return answer, err
}

// page is how long a page took until its first and its last byte, and how many bytes it had on the way.
type page struct {
	first, last time.Duration
	bytes       int64
}

// fetch loads a page.
func (s *site) fetch(ctx context.Context, path string) (p page, err error) {
	began := time.Now()
	answer, err := s.ask(ctx, path)
	if err != nil {
		return p, err
	}
	defer answer.Body.Close()
	text := bufio.NewReader(answer.Body)
	if _, err := text.Peek(1); err != nil {
		return p, err
	}
	p.first = time.Since(began)
	p.bytes, err = io.Copy(io.Discard, text)
	p.last = time.Since(began)
	return p, err
}

// watched has viewers follow pages, or has them leave. It returns when each has its page.
func (s *site) watched(ctx context.Context, on bool) error {
	if s.unwatch != nil {
		s.unwatch()
		s.unwatch = nil
	}
	if !on {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	var reading sync.WaitGroup
	s.unwatch = func() { stop(); reading.Wait() }
	come := make(chan error, 2*viewers) // that it has come, and that it has ended
	for i := range viewers {
		pages := []string{"/", "/pool/" + viewedNetwork, "/host/" + host(0), "/pool/" + cliPool}
		reading.Go(func() { come <- s.follow(ctx, pages[i%len(pages)], come) })
	}
	for range viewers {
		if err := <-come; err != nil {
			return err
		}
	}
	return nil
}

// follow reads the changes of a page until the context ends. It tells when the page has come.
func (s *site) follow(ctx context.Context, page string, come chan<- error) error {
	answer, err := s.ask(ctx, "/events?"+url.Values{"page": {page}, "have": {""}}.Encode())
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text := bufio.NewReader(answer.Body)
	for {
		line, err := text.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(line, "data: ") {
			come <- nil
			break
		}
	}
	_, err = io.Copy(io.Discard, text)
	return err
}
