//go:build linux

// Podtool is the only program that the pods of the test bed run: it pauses, serves HTTP, asks others by HTTP and by
// ARP.
//
//	podtool pause                    wait for the end
//	podtool serve [:8080]            answer /, /get?url=URL and /arp?dev=NAME&ip=ADDRESS until the end
//	podtool get URL                  print what an URL answers
//	podtool arp NAME ADDRESS         print the MACs that answer for an address on an interface
//
// It is static and needs no files, so that it is an image by itself.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// patience is the time that one question may take.
const patience = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "✗", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	verb := strings.Join(args[:min(1, len(args))], "")
	switch {
	case verb == "pause" && len(args) == 1:
		<-ctx.Done()
		return nil
	case verb == "serve" && len(args) <= 2:
		return serve(ctx, append(args, ":8080")[1])
	case verb == "get" && len(args) == 2:
		return get(ctx, args[1], out)
	case verb == "arp" && len(args) == 3:
		return arp(ctx, args[1], args[2], out)
	default:
		return fmt.Errorf("no verb %q with these arguments; hint: pause, serve [:PORT], get URL or arp NAME ADDRESS",
			verb)
	}
}

// serve answers until the context ends. The root has the host's name and the pod's own address of the connection.
func serve(ctx context.Context, listen string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		name, err := os.Hostname()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(w, "%s at %s answers %s\n", name, r.Context().Value(http.LocalAddrContextKey), r.RemoteAddr)
	})
	answer := func(do func(*http.Request, io.Writer) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if err := do(r, w); err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
			}
		}
	}
	mux.HandleFunc("GET /get", answer(func(r *http.Request, w io.Writer) error {
		return get(r.Context(), r.FormValue("url"), w)
	}))
	mux.HandleFunc("GET /arp", answer(func(r *http.Request, w io.Writer) error {
		return arp(r.Context(), r.FormValue("dev"), r.FormValue("ip"), w)
	}))
	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: patience}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

func get(ctx context.Context, url string, out io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	// A connection of its own for each question: what an old one reaches says nothing about the network now.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
		return fmt.Errorf("GET %s: %s: %s", url, response.Status, text)
	}
	_, err = io.Copy(out, response.Body)
	return err
}

// arp prints the MACs that answer for an address, a line each.
func arp(ctx context.Context, device, address string, out io.Writer) error {
	addr, err := netip.ParseAddr(address)
	if err != nil || !addr.Is4() {
		return fmt.Errorf("%q is not an IPv4 address", address)
	}
	ctx, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	macs, err := ask(ctx, device, addr)
	for _, mac := range macs {
		fmt.Fprintln(out, mac)
	}
	return err
}
