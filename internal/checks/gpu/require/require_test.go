package require_test

import (
	"testing"

	assert "github.com/stretchr/testify/require"

	"runpodctl-worker/internal/checks/gpu/require"
)

// official is the shape that the CUDA images carry: the driver is new enough, or it is one of the data centre's old branches.
const official = "cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471 brand=tesla,driver>=535,driver<536"

func TestExpression_Met(t *testing.T) {
	for _, tt := range []struct {
		name, expression string
		facts            require.Facts
		want             bool
	}{
		{"nothing is asked for", "  ", require.Facts{CUDA: "11.0"}, true},
		{"new enough", official, require.Facts{CUDA: "12.4", Driver: "550.54.15", Brand: "geforce"}, true},
		{"newer", official, require.Facts{CUDA: "12.10", Driver: "560.1", Brand: "geforce"}, true},
		{"too old", official, require.Facts{CUDA: "12.2", Driver: "535.104.05", Brand: "geforce"}, false},
		{"too old, but a data centre driver of a branch that is named", official, require.Facts{CUDA: "12.2", Driver: "535.104.05", Brand: "Tesla"}, true},
		{"a branch between", official, require.Facts{CUDA: "12.0", Driver: "525.60.13", Brand: "tesla"}, false},
		{"an unknown brand is held against nobody", official, require.Facts{CUDA: "12.2", Driver: "535.104.05"}, true},
		{"and: all of them", "cuda>=12.0,driver<550", require.Facts{CUDA: "12.4", Driver: "550.1"}, false},
		{"numbers, not letters", "cuda<12.10", require.Facts{CUDA: "12.8"}, true},
		{"equal", "arch=8.0", require.Facts{Arch: "8"}, true},
		{"not equal", "arch!=8.0", require.Facts{Arch: "8.0"}, false},
		{"greater", "arch>8.0", require.Facts{Arch: "8.0"}, false},
		{"at most", "arch<=8.0", require.Facts{Arch: "8.0"}, true},
		{"not this brand", "brand!=tesla", require.Facts{Brand: "geforce"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := require.Parse(tt.expression)
			assert.NoError(t, err)
			assert.Equal(t, tt.want, e.Met(tt.facts))
		})
	}
}

func TestParse_NamesWhatItCannotRead(t *testing.T) {
	for text, want := range map[string]string{
		"cuda":              `"cuda" has no comparison`,
		"cuda!12":           `"cuda!12" has no comparison that is known`,
		"cuda>=":            `"cuda>=": want a version`,
		"cuda>=12.x":        `"cuda>=12.x": want a version`,
		"cuda>=12,,":        `"" has no comparison`,
		"kernel>=5":         `"kernel>=5": want one of cuda, driver, arch, brand`,
		"brand>tesla":       `"brand>tesla": a brand is = or != to a name`,
		"cuda>=12.4 brand=": `"brand=": a brand is = or != to a name`,
	} {
		_, err := require.Parse(text)
		assert.EqualError(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(official, "12.4", "550.54.15")
	f.Add("cuda>=12.4", "12", "")
	f.Add("brand!=tesla,arch<9", "", "1.2.3.4")
	f.Fuzz(func(t *testing.T, text, cuda, driver string) {
		e, err := require.Parse(text)
		if err != nil {
			return
		}
		e.Met(require.Facts{CUDA: cuda, Driver: driver})
		again, err := require.Parse(e.String())
		assert.NoError(t, err)
		assert.Equal(t, e, again)
	})
}
