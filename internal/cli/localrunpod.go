package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"runpodctl-worker/internal/emulator"
	"runpodctl-worker/internal/mistake"
	"runpodctl-worker/internal/protocol/server"
)

const (
	shutdownTime      = 2 * time.Second // for answers that are being written
	readHeaderTimeout = 10 * time.Second
)

// localRunpod is the emulator behind a listener.
type localRunpod struct {
	base   string // http://host:port, as clients call it
	em     *emulator.Emulator
	server *http.Server
	ended  sync.WaitGroup
}

func startLocal(host string, port int, options emulator.Options, log *slog.Logger) (*localRunpod, error) {
	em, err := emulator.New(options)
	if err != nil {
		return nil, usagef("%w", err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		_ = em.Close()
		return nil, listenError(host, port, err)
	}
	local := &localRunpod{
		base: "http://" + clientAddr(host, listener.Addr()),
		em:   em,
		server: &http.Server{
			Handler:           server.Guard(em.Handler(), log),
			ReadHeaderTimeout: readHeaderTimeout,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
	local.ended.Go(func() {
		if err := mistake.Catch(func() { em.Run(context.Background()) }); err != nil {
			log.Error("the local Runpod looks at no time limits any more: " + err.Error())
		}
	})
	local.ended.Go(func() {
		if err := local.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the local Runpod stopped listening: " + err.Error())
		}
	})
	return local, nil
}

// close answers the calls that are held and stops listening.
func (l *localRunpod) close() {
	_ = l.em.Close()
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
	l.ended.Wait()
}

func listenError(host string, port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("port %d on %s is taken; choose another with --%s (0 = any free one)", port, host, flagPort)
	}
	return fmt.Errorf("cannot listen on %s: %w", net.JoinHostPort(host, strconv.Itoa(port)), err)
}

// clientAddr is the address for clients on this machine: a wildcard is no address to call.
func clientAddr(host string, addr net.Addr) string {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// isLoopback reports whether only this machine can reach a host.
func isLoopback(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
