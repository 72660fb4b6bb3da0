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

// Fields is a JSON object by its keys, as they are written: decoding into a struct would take "Input" for "input", and
// the last of several spellings would win. The values are copies of the bytes that came.
func Fields(object []byte) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	err := json.Unmarshal(object, &fields)
	return fields, err
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
