package emulator_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"runpodctl-worker/internal/emulator"
)

// document is what these tests read of /openapi.json.
type document struct {
	OpenAPI string
	Servers []struct {
		URL       string
		Variables map[string]struct {
			Enum    []string
			Default string
		}
	}
	Paths      map[string]pathItem
	Components struct{ Parameters map[string]parameter }
}

type pathItem struct {
	Servers                       []struct{ URL string }
	Parameters                    []parameter
	Get, Post, Put, Patch, Delete *operation
}

type operation struct {
	OperationID string
	Parameters  []parameter
	Responses   map[string]any
}

type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
}

func (p pathItem) operations() map[string]*operation {
	all := map[string]*operation{"GET": p.Get, "POST": p.Post, "PUT": p.Put, "PATCH": p.Patch, "DELETE": p.Delete}
	maps.DeleteFunc(all, func(_ string, o *operation) bool { return o == nil })
	return all
}

func (p pathItem) atRootOnly() bool { return len(p.Servers) > 0 }

// names are the parameters of a kind that an operation of a path has.
func (d *document) names(item pathItem, o *operation, in string) []string {
	names := []string{}
	for _, p := range slices.Concat(item.Parameters, o.Parameters) {
		if p.Ref != "" {
			p = d.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
		}
		if p.In == in {
			names = append(names, p.Name)
		}
	}
	return names
}

func newDocument(t *testing.T, o emulator.Options) (*rig, *document) {
	t.Helper()
	r := newRig(t, o)
	doc := &document{}
	require.NoError(t, json.Unmarshal([]byte(r.ok("GET", "/openapi.json", "")), doc))
	return r, doc
}

func TestDocumentIsWhole(t *testing.T) {
	r, doc := newDocument(t, emulator.Options{Endpoints: []string{"first", "second"}, APIKey: "k"})
	require.Equal(t, "3.1.0", doc.OpenAPI)
	require.Equal(t, []string{"first", "second"}, doc.Servers[0].Variables["endpoint"].Enum)
	require.Equal(t, "first", doc.Servers[0].Variables["endpoint"].Default)
	ids := map[string]bool{}
	for path, item := range doc.Paths {
		for method, o := range item.operations() {
			require.NotEmpty(t, o.OperationID, "%s %s", method, path)
			require.False(t, ids[o.OperationID], "%s is there twice", o.OperationID)
			ids[o.OperationID] = true
		}
	}
	var tree any
	text := r.ok("GET", "/openapi.json", "")
	require.NoError(t, json.Unmarshal([]byte(text), &tree))
	for _, ref := range regexp.MustCompile(`"\$ref": "#/([^"]+)"`).FindAllStringSubmatch(text, -1) {
		at := tree
		for key := range strings.SplitSeq(ref[1], "/") {
			at = at.(map[string]any)[key]
		}
		require.NotNil(t, at, ref[1])
	}
}

// Any call can be refused to a page from elsewhere, and those that have a rate limit for coming too often.
func TestDocumentHasTheRefusals(t *testing.T) {
	_, doc := newDocument(t, emulator.Options{})
	for path, item := range doc.Paths {
		for method, o := range item.operations() {
			require.Contains(t, o.Responses, "403", "%s %s", method, path)
			_, documented := o.Responses["429"]
			require.Equal(t, emulator.HasRateLimit(path), documented, "%s %s: 429", method, path)
		}
	}
}

// segment is a parameter in a path of echo's.
var segment = regexp.MustCompile(`:(\w+)`)

// Each route is in the document, below both prefixes and with the same parameters, and the reverse.
func TestDocumentHasTheRoutes(t *testing.T) {
	r, doc := newDocument(t, emulator.Options{})
	documented := map[string]bool{}
	for path, item := range doc.Paths {
		for method, o := range item.operations() {
			var inPath []string
			for _, name := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(path, -1) {
				inPath = append(inPath, name[1])
			}
			require.ElementsMatch(t, inPath, doc.names(item, o, "path"), "%s %s", method, path)
			documented[method+" "+path] = true
			if !item.atRootOnly() {
				documented[method+" /v2/{endpoint}"+path] = true
			}
		}
	}
	routed, wild := map[string]bool{}, []string{}
	for path, methods := range r.Routes() {
		path = strings.Replace(segment.ReplaceAllString(path, "{$1}"), "/openai/v1/*", "/openai/v1/{route}", 1)
		if start, ok := strings.CutSuffix(path, "*"); ok {
			wild = append(wild, start) // a worker's call; the test below tries its methods
			continue
		}
		for _, method := range methods {
			routed[method+" "+path] = true
		}
	}
	for _, start := range wild {
		before := len(documented)
		maps.DeleteFunc(documented, func(route string, _ bool) bool {
			_, path, _ := strings.Cut(route, " ")
			return strings.HasPrefix(path, start)
		})
		require.Less(t, len(documented), before, "%s* is not in the document", start)
	}
	require.Equal(t, routed, documented)
}

// parameterReads are the places in the source where a parameter of a query is read.
var parameterReads = regexp.MustCompile(`(?:QueryParam\(|number\(c, |\.param\([\w.]+, )"(\w+)"`)

// A method that the document names is answered, any other is refused; so are parameters.
func TestDocumentIsTrue(t *testing.T) {
	const short = time.Millisecond
	r, doc := newDocument(t, emulator.Options{
		TakeHold: short, StopHold: short, StreamHold: short, SyncHold: short, OpenAIHold: short, MinWait: short,
	})
	fill := strings.NewReplacer("{job}", r.run(`{"input":1}`), "{batch}", r.newBatch(1), "{worker}", "w1", "{route}", "models")
	numbers, read := []string{"wait", "limit", "offset", "ttl"}, map[string]bool{}
	for _, pattern := range []string{"*.go", "../protocol/server/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, name := range parameterReads.FindAllStringSubmatch(string(source), -1) {
				read[name[1]] = true
			}
		}
	}
	documented := map[string]bool{}
	for path, item := range doc.Paths {
		base := "/v2/local"
		if item.atRootOnly() {
			base = ""
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			code, text := r.call(method, base+fill.Replace(path), "")
			o := item.operations()[method]
			if o == nil {
				require.Equal(t, http.StatusMethodNotAllowed, code, "%s %s", method, path)
				continue
			}
			require.NotEqual(t, http.StatusMethodNotAllowed, code, "%s %s", method, path)
			require.NotContains(t, text, "no such route", "%s %s", method, path)
			query := doc.names(item, o, "query")
			for _, name := range query {
				documented[name] = true
			}
			for _, name := range numbers {
				code, text := r.call(method, base+fill.Replace(path)+"?"+name+"=x", "")
				refused := code == http.StatusBadRequest && strings.Contains(text, name+": not a number")
				require.Equal(t, slices.Contains(query, name), refused, "%s %s?%s=x: %s", method, path, name, text)
			}
		}
	}
	require.Equal(t, documented, read)
}

func TestDocsPage(t *testing.T) {
	r := newRig(t, emulator.Options{APIKey: "k"})
	r.key = ""
	for path, want := range map[string]string{
		"/docs": "text/html; charset=utf-8", "/docs/": "text/html; charset=utf-8", "/openapi.json": "application/json",
		"/docs/page.css": "text/css; charset=utf-8", "/docs/page.js": "text/javascript; charset=utf-8",
	} {
		res, err := r.http.Get("http://local" + path)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, want, res.Header.Get("Content-Type"))
		require.Equal(t, "default-src 'self'", res.Header.Get("Content-Security-Policy"))
	}
	for _, path := range []string{"/docs", "/docs/page.css", "/docs/page.js"} {
		require.NotRegexp(t, `https?://|//[a-z]+\.|innerHTML|<style|style=|onclick|@import`, r.ok("GET", path, ""), path)
	}
}
