package worker

import (
	"bytes"
	"encoding/json"
	"time"
)

// batchTime is the time between two posts of a stream whose texts are joined. Its first item is never held back.
const batchTime = 60 * time.Millisecond

// join adds a text to the last item that waits, if that is one too: clients who put the pieces together see no
// difference. The lock is held.
func (o *outbound) join(item json.RawMessage) bool {
	n := len(o.items)
	if !o.t.w.cfg.StreamBatch || n == 0 || n == 1 && o.posting {
		return false
	}
	last := o.items[n-1]
	more := len(item) - len(`""`)
	if !isText(item) || !isText(last) || len(last)+more+chunkFrame > o.t.w.cfg.MaxChunk || o.bytes+more > maxQueuedBytes {
		return false
	}
	o.items[n-1] = append(last[:len(last)-1], item[1:]...)
	o.bytes += more
	o.moved.Broadcast()
	return true
}

// tillFull is how long the first item is to wait for others to be joined with. The lock is held.
func (o *outbound) tillFull() time.Duration {
	if !o.t.w.cfg.StreamBatch || o.closed || len(o.items) > 1 || !isText(o.items[0]) {
		return 0
	}
	return batchTime - time.Since(o.chunkAt)
}

// waitFor waits for a change, or for some time if that is not 0. The lock is held.
func (o *outbound) waitFor(d time.Duration) {
	if d > 0 {
		timer := time.AfterFunc(d, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.moved.Broadcast()
		})
		defer timer.Stop()
	}
	o.moved.Wait()
}

func isText(item json.RawMessage) bool { return bytes.HasPrefix(item, []byte(`"`)) }
