package program_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/protocol"
)

func TestReturnedValues(t *testing.T) {
	tests := []struct {
		name, value string // a Python expression
		output      string // "" for none
		err         string // a part of the error
		refresh     bool
	}{
		{"empty dict", `{}`, `{}`, "", false},
		{"empty list", `[]`, `[]`, "", false},
		{"empty string", `""`, `""`, "", false},
		{"zero", `0`, `0`, "", false},
		{"false", `False`, `false`, "", false},
		{"null", `None`, `null`, "", false},
		{"true", `True`, `true`, "", false},
		{"number", `1.5`, `1.5`, "", false},
		{"tuple", `(1, "a")`, `[1,"a"]`, "", false},
		{"ordered dict", `collections.OrderedDict(a=1)`, `{"a":1}`, "", false},
		{"number keys", `{1: "a", None: "b"}`, `{"1":"a","null":"b"}`, "", false},
		{"keys of the same text", `{1: "a", "1": "b"}`, `{"1":"a","1":"b"}`, "", false},
		{"unicode", `"é 漢字 👍 שלום \x00"`, `"é 漢字 👍 שלום \u0000"`, "", false},
		{"html stays", `"<a & b>"`, `"<a & b>"`, "", false},

		{"error text", `{"error": "bad"}`, "", "bad", false},
		{"error with detail", `{"error": "x", "output": {"detail": 1}}`, `{"output":{"detail":1}}`, "x", false},
		{"error object", `{"error": {"code": 7}}`, "", `{"code":7}`, false},
		{"error list", `{"error": ["a", 1]}`, "", `["a",1]`, false},
		{"error number", `{"error": 7}`, "", `7`, false},
		{"error exception", `{"error": ValueError("boom")}`, "", `boom`, false},
		{"error true", `{"error": True}`, "", `true`, false},
		{"error empty", `{"error": "", "a": 1}`, `{"a":1}`, "", false},
		{"error null", `{"error": None}`, `{}`, "", false},
		{"error empty list", `{"error": []}`, `{}`, "", false},
		{"error with surrogate", `{"error": "bad \ud800"}`, "", `bad \ud800`, false},
		{"error beside no JSON", `{"error": "bad", "x": b""}`, "", `bad`, false},
		{"refresh", `{"refresh_worker": True, "a": 1}`, `{"a":1}`, "", true},
		{"refresh alone", `{"refresh_worker": True}`, `{}`, "", true},
		{"refresh false", `{"refresh_worker": False, "a": 1}`, `{"a":1}`, "", false},
		{"refresh with error", `{"refresh_worker": 1, "error": "e"}`, "", "e", true},
		{"refresh with no JSON", `{"refresh_worker": 1, "x": {1}}`, "", "output.x: set is not JSON", true},

		{"NaN", `{"score": float("nan")}`, "", "output.score: NaN is not valid JSON", false},
		{"infinity", `[1, float("inf")]`, "", "output[1]: Infinity is not valid JSON", false},
		{"minus infinity", `-float("inf")`, "", "output: -Infinity is not valid JSON", false},
		{"bytes", `{"items": [0, 1, 2, {"emb": b"x"}]}`, "", "output.items[3].emb: bytes is not JSON", false},
		{"set", `{"a b": {1, 2}}`, "", "output['a b']: set is not JSON: make it a list", false},
		{"date", `datetime.date(2020, 1, 1)`, "", "output: datetime.date is not JSON: call its .isoformat()", false},
		{"tuple key", `{"a": {(1, 2): 3}}`, "", "output.a: tuple is no key in JSON", false},
		{"NaN key", `{float("nan"): 3}`, "", "output: the key nan: NaN is not valid JSON", false},
		{"lone surrogate", `{"text": "a\ud83d"}`, "", `output.text: lone surrogate '\ud83d' is not valid text`, false},
		{"surrogate key", `{"\udc00": 1}`, "", `lone surrogate '\udc00'`, false},
		{"cycle", `{"a": loop}`, "", "output.a[0]: list contains itself", false},
		{"too deep", `deep`, "", "output: nested too deeply for JSON", false},
		{"huge integer", `10 ** 5000`, "", "output: Exceeds the limit", false},
		{"an object", `object()`, "", "output: object is not JSON", false},
		{"a function", `{"f": print}`, "", "output.f: builtin_function_or_method is not JSON", false},
		{"shared, no cycle", `[[loop[:0]] * 2] * 2`, `[[[],[]],[[],[]]]`, "", false},
	}
	c := startFile(t, handlerFile("results.py"))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "huge integer" && strings.Contains(c.ready.Name, "python 3.9") {
				t.Skip("no such limit there")
			}
			out, _ := c.do(`{"return":` + string(protocol.Quote(tt.value)) + `}`)
			require.Equal(t, tt.output, string(out.Output))
			require.Equal(t, tt.refresh, out.Refresh)
			require.False(t, out.Stream)
			if tt.err == "" {
				require.Empty(t, out.Error)
			} else {
				require.Contains(t, out.Error, tt.err)
			}
			if tt.output != "" {
				require.True(t, json.Valid(out.Output))
			}
		})
	}
}

// What is too large costs its own job, not the program and the jobs beside it.
func TestTooLarge(t *testing.T) {
	const limit = "67108864"
	tests := []struct {
		name, input, err string
		chunks           int
		progress         []string
	}{
		{"a result", `"result"`, "the result is too large: 80000002 bytes, the limit is " + limit, 0, nil},
		{"a result beyond a frame", `"frame"`, "the result is too large: 300000002 bytes, the limit is " + limit, 0, nil},
		{"an item", `"item"`, "stream[1] is too large: 80000002 bytes, the limit is " + limit, 1, nil},
		{"all items together", `"items"`, "the result is too large: 90000010 bytes, the limit is " + limit, 3, nil},
		{"an error", `"error"`, "the error is too large: 80000000 bytes, the limit is " + limit, 0, nil},
		{"an error object", `"object"`, "the error is too large: 80000007 bytes, the limit is " + limit, 0, nil},
		{"an exception", `"raise"`, "...TRUNCATED 79", 0, nil},
		{"an exception of a stream", `"raise later"`, "...TRUNCATED 79", 1, nil},
		{"progress", `"progress"`, "", 0, []string{`"before"`, `"after"`}},
		{"progress of a child", `"child"`, "", 0, []string{`"after"`}},
	}
	for kind, text := range map[string]string{
		"sync": "def handler(job): return work(job)", "async": "async def handler(job): return work(job)",
	} {
		t.Run(kind, func(t *testing.T) {
			c := startFile(t, write(t, `
import multiprocessing, runpod
huge = "x" * 80_000_000
def items(*values, error=None):
    yield from values
    if error: raise error
def child(job): runpod.serverless.progress_update(job, huge)
def work(job):
    what = job["input"]
    if what == "result": return huge
    if what == "frame": return "x" * 300_000_000
    if what == "item": return items("first", huge)
    if what == "items": return items(*["x" * 30_000_000] * 3)
    if what == "error": return {"error": huge}
    if what == "object": return {"error": {"a": huge[:-1]}}
    if what == "raise": raise ValueError(huge)
    if what == "raise later": return items(1, error=ValueError(huge))
    if what == "child":
        p = multiprocessing.get_context("fork").Process(target=child, args=(job,)); p.start(); p.join()
        runpod.serverless.progress_update(job, "after")
    else:
        for value in ("before", huge, "after"): runpod.serverless.progress_update(job, value)
    return "done"
`+text+`
runpod.serverless.start({"handler": handler, "return_aggregate_stream": True})
`))
			for _, tt := range tests {
				t.Run(tt.name, func(t *testing.T) {
					out, s := c.do(tt.input)
					require.Len(t, s.chunks, tt.chunks)
					require.Equal(t, tt.progress, s.progress)
					require.Contains(t, out.Error, tt.err)
					require.Equal(t, tt.err == "", string(out.Output) == `"done"`)
				})
			}
			c.shows("progress_update was dropped. progress is too large: 80000002 bytes, the limit is " + limit)
		})
	}
}

func TestStreamedItems(t *testing.T) {
	tests := []struct {
		name, items string // a Python list
		chunks      []string
		err         string
		refresh     bool
	}{
		{"values", `[0, "", None, {}, [1]]`, []string{"0", `""`, "null", "{}", "[1]"}, "", false},
		{"none", `[]`, nil, "", false},
		{
			"error item ends it", `["a", {"error": "bad", "refresh_worker": True, "code": 9}, "never"]`,
			[]string{`"a"`, `{"code":9,"error":"bad"}`},
			"bad", true,
		},
		{"error object", `[{"error": {"code": 7}}, "never"]`, []string{`{"error":{"code":7}}`}, `{"code":7}`, false},
		{"empty error key is dropped", `[{"error": "", "a": 1}, 2]`, []string{`{"a":1}`, "2"}, "", false},
		{"null error key is dropped", `[{"error": None}]`, []string{`{}`}, "", false},
		{"refresh", `[{"refresh_worker": True, "a": 1}, 2]`, []string{`{"a":1}`, "2"}, "", true},
		{"no JSON", `["a", {"b": b""}, "never"]`, []string{`"a"`}, "stream[1].b: bytes is not JSON", false},
		{"surrogate", `["\ud800"]`, nil, `stream[0]: lone surrogate`, false},
	}
	c := startFile(t, handlerFile("results.py"))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, s := c.do(`{"yield":` + string(protocol.Quote(tt.items)) + `}`)
			require.Equal(t, tt.chunks, s.chunks)
			require.True(t, out.Stream)
			require.Equal(t, tt.refresh, out.Refresh)
			if tt.err == "" {
				require.Empty(t, out.Error)
				require.Equal(t, `[]`, string(out.Output))
			} else {
				require.Contains(t, out.Error, tt.err)
				require.Nil(t, out.Output)
			}
		})
	}
}

func TestRefresh(t *testing.T) {
	t.Run("by the result", func(t *testing.T) {
		c := startFile(t, handlerFile("refresh.py"))
		out, _ := c.do(`{"refresh":false}`)
		require.False(t, out.Refresh)
		out, _ = c.do(`{"refresh":true}`)
		require.True(t, out.Refresh)
		require.Equal(t, `{"done":true}`, string(out.Output))
	})
	t.Run("by the config", func(t *testing.T) {
		c := startFile(t, write(t, `
import runpod
def handler(job):
    if job["input"]: raise ValueError()
    return 1
runpod.serverless.start({"handler": handler, "refresh_worker": True, "x-unknown": [1]})
`))
		for _, input := range []string{"0", "1"} {
			out, _ := c.do(input)
			require.True(t, out.Refresh, "also for a failure")
		}
	})
}
