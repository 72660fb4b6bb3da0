package protocol

import (
	"bytes"
	"encoding/json"
)

// Quote is s as a JSON string. Unlike json.Marshal it leaves <, > and & alone, as every
// other worker does, and it replaces invalid UTF-8.
func Quote(s string) []byte {
	b, err := marshal(s)
	if err != nil { // a string always encodes
		return []byte(`""`)
	}
	return b
}

func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
