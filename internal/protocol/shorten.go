package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
)

// ShortError is an error text without its middle where it has more than MaxError bytes. A JSON object, as the SDK makes of
// an exception, stays one: then its own texts lose theirs.
func ShortError(text string) string {
	if len(text) <= MaxError {
		return text
	}
	if fields, err := Fields([]byte(text)); err == nil {
		for limit := MaxError; limit > 0; limit /= 2 {
			if short, err := marshal(shortFields(fields, limit)); err == nil && len(short) <= MaxError {
				return string(short)
			}
		}
	}
	return cutMiddle(text, MaxError)
}

// shortFields is an object whose texts have no more than limit bytes.
func shortFields(fields map[string]json.RawMessage, limit int) map[string]json.RawMessage {
	short := make(map[string]json.RawMessage, len(fields))
	for key, value := range fields {
		var text string
		if len(value) > limit && json.Unmarshal(value, &text) == nil {
			value = Quote(cutMiddle(text, limit))
		}
		short[key] = value
	}
	return short
}

// cutMiddle leaves about limit bytes of a text, the words about the cut included.
func cutMiddle(text string, limit int) string {
	note := fmt.Sprintf("\n...TRUNCATED %d BYTES...\n", len(text)) // at least as long as it will be
	half := (limit - len(note)) / 2
	if len(text) <= limit || half <= 0 {
		return text
	}
	head := strings.ToValidUTF8(text[:half], "")
	tail := strings.ToValidUTF8(text[len(text)-half:], "")
	return fmt.Sprintf("%s\n...TRUNCATED %d BYTES...\n%s", head, len(text)-len(head)-len(tail), tail)
}
