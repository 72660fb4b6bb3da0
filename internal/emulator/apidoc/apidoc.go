// Package apidoc is the OpenAPI document of the emulator, and a page that shows it.
package apidoc

import (
	"bytes"
	_ "embed"
	"encoding/json"
)

//go:embed openapi.json
var document []byte

// Document is the document for the endpoints that there are; the first is the default.
func Document(endpoints []string) []byte {
	all, err := json.Marshal(endpoints)
	if err != nil { // strings always encode
		return document
	}
	first := append([]byte(`"default": "`), endpoints[0]...)
	doc := bytes.Replace(document, []byte(`["local"]`), all, 1)
	return bytes.Replace(doc, []byte(`"default": "local"`), append(first, '"'), 1)
}

// The page and what it loads. It has no text of its own: all of it comes from the document.
var (
	//go:embed page.html
	Page []byte
	//go:embed page.css
	Style []byte
	//go:embed page.js
	Script []byte
)
