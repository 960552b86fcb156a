package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// site is a process that serves the pages, and a browser that was let in.
type site struct {
	at      *url.URL
	browser *http.Client
	process *exec.Cmd
	// unwatch ends the streams of the viewers; nil if there are none.
	unwatch func()
}

// newSite serves the pages for the user of a kubeconfig, and lets a browser in.
func (b *bench) newSite(ctx context.Context, kubeconfig string) (*site, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	s := &site{
		browser: &http.Client{Jar: jar, Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}},
	}
	link, err := s.start(ctx, kubeconfig)
	if err != nil {
		return nil, err
	}
	if _, err := s.fetch(ctx, link); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// start starts the process. It returns the path of the link that lets a browser in.
func (s *site) start(ctx context.Context, kubeconfig string) (link string, err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return "", err
	}
	s.process = exec.CommandContext(ctx, filepath.Join(root, "bin", "bcsnetctl"), "ui", "--no-browser")
	s.process.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := s.process.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := s.process.Start(); err != nil {
		return "", err
	}
	text, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", errors.Join(err, s.close())
	}
	at, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return "", errors.Join(err, s.close())
	}
	s.at = &url.URL{Scheme: at.Scheme, Host: at.Host}
	return at.RequestURI(), nil
}

func (s *site) close() error {
	if s.unwatch != nil {
		s.unwatch()
	}
	return errors.Join(s.process.Process.Signal(os.Interrupt), s.process.Wait())
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
