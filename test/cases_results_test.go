package test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/worker/apidouble"
)

// spelled is the sample handler that returns whatever Python value its input spells.
const spelled = "../../testdata/handlers/results.py"

// HC-01, HC-04: what JSON has no word for fails the job and names its place, in run as in serve.
func TestHC01ResultsThatAreNotJSON(t *testing.T) {
	t.Parallel()
	server := serveHandler(t, spelled)
	w := runWorker(t, apidouble.New(t), spelled, nil)
	for name, row := range map[string]struct{ python, says string }{
		"NaN":                {`{"score": float("nan")}`, "output.score: NaN is not valid JSON"},
		"infinity in a list": {`{"scores": [1, float("inf")]}`, "output.scores[1]: "},
		"bytes":              {`{"image": b"png"}`, "output.image: "},
		"set":                {`{"embeddings": {1, 2}}`, "output.embeddings: set"},
		"object":             {`{"a": {"when": datetime.datetime.now()}}`, "output.a.when: datetime"},
		"lone surrogate":     {`"\ud800"`, "lone surrogate"},
		"list in itself":     {`loop`, "contains itself"},
	} {
		t.Run(name, func(t *testing.T) {
			input := `{"return":` + strconv.Quote(row.python) + `}`
			served := server.runSync(input)
			require.Equal(t, "FAILED", served.Status)
			require.Contains(t, served.Error, row.says)

			w.Offer(`{"id":"` + name + `","input":` + input + `}`)
			require.Equal(t, served.Error, w.result(t, name).errorText(t))
		})
	}
}

// HC-04: well-formed text comes through as it is, in and out.
func TestHC04Unicode(t *testing.T) {
	t.Parallel()
	server := serveHandler(t, "value.py")
	w := runWorker(t, apidouble.New(t), "value.py", nil)
	for i, text := range []string{"🦊👩‍🚀", "汉字かな한글", "שלום مرحبا", "a\x00b", "\u2028\u2029\u0085", "e\u0301", `"\/`} {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		input := `{"value":` + string(quoted) + `}`
		j := server.runSync(input)
		require.Equal(t, "COMPLETED", j.Status, j.Error)
		require.Equal(t, text, decode[string](t, j.Output))

		id := fmt.Sprint("j", i)
		w.Offer(`{"id":"` + id + `","input":` + input + `}`)
		require.Equal(t, text, decode[string](t, w.result(t, id).Output))
	}
}
