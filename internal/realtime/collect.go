package realtime

import (
	"encoding/json"
	"fmt"
	"sync"

	"runpodctl-worker/internal/protocol"
)

// collector keeps the items of a stream. Progress has nowhere to go: who waits for the answer sees nothing before it.
type collector struct {
	mu    sync.Mutex
	items []byte // with a comma before each but the first
	count int
}

// Chunk refuses what would make the answer larger than a result may be.
func (c *collector) Chunk(item json.RawMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.items)+len(item) > protocol.MaxResult {
		return fmt.Errorf("the items of the stream have more than %d bytes", protocol.MaxResult)
	}
	if c.count++; c.count > 1 {
		c.items = append(c.items, ',')
	}
	c.items = append(c.items, item...)
	return nil
}

func (*collector) Progress(json.RawMessage) {}

func (c *collector) any() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count > 0
}

func (c *collector) list() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return json.RawMessage("[" + string(c.items) + "]")
}
