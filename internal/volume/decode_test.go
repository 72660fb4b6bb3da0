package volume

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What either program writes is read the fast way. FuzzDecode says that it is read rightly.
func TestDecodeManifest(t *testing.T) {
	full := entry{Path: "/d/ä \"x\"", Size: 3, MTime: 1.5e-7, Nanos: 150, Mode: 0o644, UID: 1, GID: 2, CRC32C: "00c0ffee"}
	ours, err := json.Marshal(manifest{
		Version: version, Threshold: threshold, Small: []entry{full}, Big: []entry{full}, Refs: []entry{full},
		Links: []link{{"/d/l", "x"}}, Archive: archive{1, 2},
	})
	require.NoError(t, err)
	tests := []struct {
		name, text string
		fast       bool
	}{
		{"ours", string(ours), true},
		{"the Python class's", `{"version": 1, "threshold": 262144, "small": [{"path": "/d/\u00e4", "size": 3, "mtime": 1700000000.25}], "big": []}`, true},
		{"a key that is not known", `{"version":1,"new":1}`, false},
		{"a list twice", `{"small":[{"size":1}],"small":[{}]}`, false},
		{"a number that JSON does not have", `{"version":01}`, false},
		{"something behind it", `{"version":1}{}`, false},
		{"cut off", `{"version":1`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, fast := decodeManifest([]byte(tt.text))
			require.Equal(t, tt.fast, fast)
		})
	}
}
