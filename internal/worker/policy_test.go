package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

// RD-02: what every answer means, for the first time and in the end.
func TestPolicy(t *testing.T) {
	status := func(code int) error { return &protocol.StatusError{Call: "x", Code: code} }
	page := &protocol.StatusError{Call: "x", Code: 404, HTML: true}
	reset := &protocol.ResetError{Call: "x", Err: syscall.ECONNRESET}
	type row struct {
		err                 error
		take, result, chunk verdict
		times               int // so often a post is made that always gets this answer; 0: without end
		last                verdict
	}
	rows := map[string]row{
		"2xx":                             {nil, settled, settled, settled, 1, settled},
		"2xx that cannot be understood":   {&protocol.DecodeError{Call: "x", Err: errors.New("cut")}, again, settled, settled, 1, settled},
		"connection refused":              {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, again, again, again, 0, again},
		"no such host":                    {&net.DNSError{Name: "x"}, again, again, again, 0, again},
		"no answer in time":               {context.DeadlineExceeded, again, again, again, 0, again},
		"reset":                           {reset, again, again, again, maxCuts, shrink},
		"reset, deep inside":              {fmt.Errorf("x: %w", reset), again, again, again, maxCuts, shrink},
		"400":                             {status(400), settled, shrink, shrink, 1, shrink},
		"413":                             {status(413), settled, shrink, shrink, 1, shrink},
		"401":                             {status(401), again, again, again, maxDenials, hopeless},
		"403":                             {status(403), again, again, again, maxDenials, hopeless},
		"404":                             {status(404), again, unwanted, unwanted, 1, unwanted},
		"404, a page":                     {page, again, again, again, maxPages, unwanted},
		"409":                             {status(409), again, unwanted, unwanted, 1, unwanted},
		"410":                             {status(410), again, unwanted, unwanted, 1, unwanted},
		"422":                             {status(422), again, unwanted, unwanted, 1, unwanted},
		"408":                             {status(408), again, again, again, 0, again},
		"425":                             {status(425), again, again, again, 0, again},
		"429":                             {status(429), again, again, again, 0, again},
		"500":                             {status(500), again, again, again, 0, again},
		"502":                             {status(502), again, again, again, 0, again},
		"503":                             {status(503), again, again, again, 0, again},
		"524, of a proxy":                 {status(524), again, again, again, 0, again},
		"a redirect":                      {status(302), again, again, again, maxDenials, hopeless},
		"a status that nobody knows here": {status(418), again, again, again, maxDenials, hopeless},
		"no URL":                          {protocol.ErrNoURL, again, hopeless, hopeless, 1, hopeless},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			for c, want := range [calls]verdict{take: row.take, result: row.result, chunk: row.chunk} {
				var p patience
				require.Equal(t, want, p.judge(call(c), largeBody, row.err), "call %d", c)
			}
			for _, c := range []call{result, chunk} {
				var p patience
				n, last := 1, p.judge(c, largeBody, row.err)
				for ; last == again && n < 1000; n++ {
					last = p.judge(c, largeBody, row.err)
				}
				require.Equal(t, row.last, last)
				if row.times > 0 {
					require.Equal(t, row.times, n)
				} else {
					require.Equal(t, 1000, n)
				}
			}
			var p patience
			for range 1000 {
				require.Equal(t, row.take, p.judge(take, 0, row.err), "a take is never given up")
			}
		})
	}
}

func TestPatience_WhatIsNoSignOfSize(t *testing.T) {
	reset := &protocol.ResetError{Call: "x", Err: syscall.EPIPE}
	var p patience
	for range 3 * maxCuts {
		require.Equal(t, again, p.judge(result, largeBody-1, reset), "a small body is not the reason")
		require.Equal(t, again, p.judge(result, largeBody, syscall.ECONNREFUSED), "nobody saw the body")
	}
	p = patience{}
	for range 3 {
		for range maxCuts - 1 {
			require.Equal(t, again, p.judge(result, largeBody, reset))
		}
		require.Equal(t, again, p.judge(result, largeBody, &protocol.StatusError{Code: 503}), "the platform read it")
	}
}
