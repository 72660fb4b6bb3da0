package program

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func raw(k kind, number, size uint32, payload string) string {
	b := []byte{byte(k)}
	b = binary.BigEndian.AppendUint32(b, number)
	b = binary.BigEndian.AppendUint32(b, size)
	return string(b) + payload
}

func TestReadFrame(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         frame
		err          string
	}{
		{"whole", raw(kindDone, 7, 3, "abc"), frame{kind: kindDone, number: 7, payload: []byte("abc")}, ""},
		{"empty", raw(kindAck, 0, 0, ""), frame{kind: kindAck, payload: []byte{}}, ""},
		{"two", raw(kindChunk, 1, 1, "x") + "rest", frame{kind: kindChunk, number: 1, payload: []byte("x")}, ""},
		{"end", "", frame{}, "EOF"},
		{"half a header", "\x01\x02", frame{}, "inside a frame's header"},
		{"half a payload", raw(kindDone, 7, 30, "abc"), frame{}, "inside a frame of 30 bytes"},
		{"no payload", raw(kindDone, 7, 30, ""), frame{}, "inside a frame of 30 bytes"},
		{"text", "Traceback (most recent call last):", frame{}, "over the limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readFrame(bufio.NewReader(strings.NewReader(tt.stream)), nil)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, got)
		})
	}
	t.Run("large", func(t *testing.T) {
		payload := strings.Repeat("0123456789", 700_000)
		got, err := readFrame(bufio.NewReader(strings.NewReader(raw(kindDone, 1, 7_000_000, payload))), nil)
		require.NoError(t, err)
		require.Len(t, got.payload, len(payload))
		require.Equal(t, payload[len(payload)-100:], string(got.payload[len(payload)-100:]))
	})
	t.Run("a length alone claims little memory", func(t *testing.T) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readFrame(bufio.NewReader(strings.NewReader(raw(kindDone, 1, maxPayload, "x"))), nil)
		runtime.ReadMemStats(&after)
		require.Error(t, err)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*firstRead))
	})
}

func TestParseDone(t *testing.T) {
	out, cancelled, err := parseDone(frame{payload: []byte("\x0d\x00\x00\x00\x02no{}")})
	require.NoError(t, err)
	require.True(t, cancelled)
	require.True(t, out.Refresh)
	require.Equal(t, "no", out.Error)
	require.Equal(t, "{}", string(out.Output))
	for _, bad := range []string{"", "\x00\x00", "\x00\x00\x00\x00\x05abc", "\x00\xff\xff\xff\xffabc"} {
		_, _, err := parseDone(frame{payload: []byte(bad)})
		require.Error(t, err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte(raw(kindDone, 1, 5, "\x00\x00\x00\x00\x00")))
	f.Add([]byte(raw(kindChunk, 1, 2, "{}") + raw(kindProgress, 9, 1, "1")))
	f.Add([]byte(raw(kindProgressOf, 3, 5, "job{}") + raw(kindHello, 1, 2, "{}")))
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	f.Add([]byte(raw(kindDone, 1, 19, "\x04\x00\x00\x00\x02no\"1234567890\"") + raw(kindDone, 1, 9, "\x04\xff\xff\xff\xff1234")))
	f.Fuzz(func(t *testing.T, stream []byte) {
		p := New(Options{})
		s := newMemory(func(int) error { return nil })
		large := &spooler{create: s.spool, from: 8, log: slog.New(slog.DiscardHandler)}
		c := &call{sink: nothing{}, chunks: make(chan json.RawMessage, window), done: make(chan struct{})}
		p.calls[1] = c
		r := bufio.NewReader(bytes.NewReader(stream))
		defer func() { require.Zero(t, s.open, "every file is closed") }()
		for {
			fr, err := readFrame(r, large)
			if err != nil {
				if len(stream) == 0 {
					require.ErrorIs(t, err, io.EOF)
				}
				return
			}
			if err := p.act(fr); err != nil {
				return
			}
			p.progressOf(fr)
			c.out.Drop() // of the job that a DONE frame has ended
		}
	})
}

type nothing struct{}

func (nothing) Chunk(json.RawMessage) error { return nil }
func (nothing) Progress(json.RawMessage)    {}
