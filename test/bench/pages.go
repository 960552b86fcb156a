package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	v1 "github.com/bcsnet/bcsnet/api/v1"
	"github.com/bcsnet/bcsnet/pkg/cli/app"
	"github.com/bcsnet/bcsnet/pkg/cli/ui"
)

// otherPools is the number of pools that there are beside the large one when pages are measured.
const otherPools = 199

// pages measures the pages of bcsnetctl ui, as a browser gets them, compressed: the list of 200 pools and the large
// pool, whose map has 4,096 blocks.
func (b *bench) pages(ctx context.Context, kubeconfig string) (err error) {
	for i := range otherPools {
		subnet := fmt.Sprintf("10.113.%d.0/24", i)
		if _, err := b.pool(ctx, fmt.Sprintf("bench-page-%d", i), subnet, v1.MaterializeOnDemand); err != nil {
			return err
		}
	}
	a := app.New(app.ProgramName, "bench", genericiooptions.IOStreams{
		In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard,
	})
	*a.Flags.KubeConfig = kubeconfig
	server, err := ui.New(a, func(string) {})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(serving, l) }()
	defer func() {
		stop()
		err = errors.Join(err, <-ended)
	}()
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}
	if _, err := fetch(ctx, browser, ui.URL(l, ui.Link(server.Token(), "/"))); err != nil {
		return err
	}
	for _, path := range []string{"/", "/pool/" + cliPool, "/ip/10.112.0.20"} {
		var all []page
		for range b.rounds {
			p, err := fetch(ctx, browser, ui.URL(l, path))
			if err != nil {
				return err
			}
			all = append(all, p)
		}
		b.report.page(path, all)
	}
	return nil
}

// page is the time until the last byte of a page, and the number of its bytes on the way.
type page struct {
	took  time.Duration
	bytes int64
}

// fetch loads a page as a browser does.
func fetch(ctx context.Context, browser *http.Client, url string) (p page, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return p, err
	}
	r.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	answer, err := browser.Do(r)
	if err != nil {
		return p, err
	}
	defer answer.Body.Close()
	if p.bytes, err = io.Copy(io.Discard, answer.Body); err != nil {
		return p, err
	}
	if answer.StatusCode != http.StatusOK {
		return p, fmt.Errorf("%s answers %s", url, answer.Status)
	}
	p.took = time.Since(began)
	return p, nil
}
