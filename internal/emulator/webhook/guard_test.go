package webhook

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIsPublic(t *testing.T) {
	for text, public := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "100.128.0.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "172.16.0.1": false,
		"192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false,
		"240.0.0.1": false, "198.18.0.1": false, "192.0.2.1": false, "::1": false, "::": false, "fe80::1%eth0": false, "fd00::1": false,
		"ff02::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false,
		"2002:7f00:1::": false, "2001:0:1::1": false, "2001:db8::1": false, "fec0::1": false, "::ffff:0:127.0.0.1": false,
	} {
		require.Equal(t, public, isPublic(netip.MustParseAddr(text)), text)
	}
}

// Whatever leads to this machine or a private network is refused before a byte is sent.
func TestSE01_PrivateTargets(t *testing.T) {
	var connections atomic.Int32
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	port := strconv.Itoa(srv.Listener.Addr().(*net.TCPAddr).Port)
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0x7f.1", "017700000001", "127.1", "0.0.0.0", "[::]",
		"169.254.169.254", "10.0.0.1", "100.64.0.1", "192.168.0.1", "[64:ff9b::7f00:1]",
	} {
		t.Run(host, func(t *testing.T) {
			s, _, _ := newSender(Options{Gaps: []time.Duration{}, Timeout: time.Second}, nil)
			s.client = newClient(s.opts)
			m := message(t, "http://"+host+":"+port+"/")
			require.Error(t, s.attempt(m, s.admit(m)))
			s.Close()
		})
	}
	require.Zero(t, connections.Load())
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	var followed atomic.Bool
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Store(true) }))
	defer target.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		srv := httptest.NewServer(http.RedirectHandler(target.URL, status))
		s := New(Options{AllowPrivate: true})
		m := message(t, srv.URL)
		require.ErrorContains(t, s.attempt(m, s.admit(m)), "the receiver answered "+strconv.Itoa(status))
		s.Close()
		srv.Close()
	}
	require.False(t, followed.Load())
}

// The status settles a delivery; a body without an end, or packed, is not waited for.
func TestEndlessAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	s := New(Options{AllowPrivate: true})
	defer s.Close()
	m := message(t, srv.URL)
	require.NoError(t, s.attempt(m, s.admit(m)))
}

// A receiver that switches protocols hands over its connection, which nothing but us ends.
func TestSwitchedProtocols(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_, _ = io.Copy(io.Discard, conn) // until the other side ends it
	}()
	s := New(Options{AllowPrivate: true})
	m := message(t, "http://"+listener.Addr().String())
	require.ErrorContains(t, s.attempt(m, s.admit(m)), "the receiver answered 101")
	s.Close()
	<-over
}
