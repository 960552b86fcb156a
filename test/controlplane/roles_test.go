package controlplane_test

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/bcsnet/bcsnet/test/controlplane"
)

// roleEnv makes the test binary play another program, so that tests need none built for them.
const roleEnv = "CONTROLPLANE_TEST_ROLE"

func play(role string) int {
	var err error
	switch role {
	case "owner":
		err = playOwner()
	case "controller":
		err = playController()
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// playOwner starts a control plane, says where it is, and waits to be killed.
func playOwner() error {
	cp, err := controlplane.Start(context.Background())
	if err != nil {
		return err
	}
	fmt.Println(cp.Dir)
	select {}
}

// playController takes the flags of bcsnet-controller, and is ready at once.
func playController() error {
	flags := flag.NewFlagSet("controller", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "")
	api := flags.String("http-bind-address", "", "")
	metrics := flags.String("metrics-bind-address", "", "")
	health := flags.String("health-probe-bind-address", "", "")
	fail := flags.String("fail", "", "")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	if *fail != "" {
		return fmt.Errorf("told to fail: %s", *fail)
	}
	config, err := os.ReadFile(*kubeconfig)
	if err != nil {
		return err
	}
	ended := make(chan error, 3)
	serve := func(address, path, text string) {
		mux := http.NewServeMux()
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
		go func() { ended <- http.ListenAndServe(address, mux) }()
	}
	serve(*api, "/kubeconfig", string(config))
	serve(*metrics, "/metrics", os.Getenv("POD_NAME")+"."+os.Getenv("POD_NAMESPACE"))
	serve(*health, "/readyz", "ok")

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		fmt.Println("ended in order")
		return nil
	}
}
