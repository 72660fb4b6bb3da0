package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// readJSON reads a flag's value that is JSON text, a file's path, @file, or - for standard input.
func readJSON(flag, value string, stdin io.Reader) (json.RawMessage, error) {
	text, source, err := readValue(value, stdin)
	if err != nil {
		return nil, usagef("--%s: %w", flag, bare(err))
	}
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte(markUTF8)))
	if problem := encodingProblem(text); problem != "" {
		return nil, usagef("--%s%s %s", flag, source, problem)
	}
	var parsed json.RawMessage
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, usagef("--%s%s is not JSON: %s", flag, source, jsonProblem(text, err))
	}
	return parsed, nil
}

// readValue gives the text behind a value, and what to call it in a message.
func readValue(value string, stdin io.Reader) (text []byte, source string, err error) {
	trimmed := strings.TrimSpace(value)
	switch {
	case trimmed == "":
		return nil, "", errors.New("is empty")
	case value == "-":
		text, err = io.ReadAll(stdin)
		return text, " (standard input)", err
	case strings.HasPrefix(value, "@"):
		text, err = os.ReadFile(value[1:])
		return text, " " + value[1:], err
	case strings.ContainsAny(trimmed[:1], `{["`):
		return []byte(value), "", nil
	}
	text, err = os.ReadFile(value)
	if err != nil && json.Valid([]byte(value)) { // a bare number, true or null
		return []byte(value), "", nil
	}
	return text, " " + value, err
}

// What some editors and shells put in front of a text.
const (
	markUTF8    = "\xef\xbb\xbf"
	markUTF16LE = "\xff\xfe"
	markUTF16BE = "\xfe\xff"
)

// encodingProblem says why a text cannot be JSON, whatever it says. Decoding would replace what it does not understand.
func encodingProblem(text []byte) string {
	if bytes.HasPrefix(text, []byte(markUTF16LE)) || bytes.HasPrefix(text, []byte(markUTF16BE)) {
		return "is UTF-16; save it as UTF-8"
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return fmt.Sprintf("is not UTF-8: byte 0x%02x in line %d", text[i], 1+bytes.Count(text[:i], []byte("\n")))
		}
		i += size
	}
	return ""
}

// jsonProblem says where the text stops being JSON.
func jsonProblem(text []byte, err error) string {
	if len(text) == 0 {
		return "it is empty"
	}
	var offset int64
	switch e := err.(type) { //nolint:errorlint // encoding/json returns these unwrapped
	case *json.SyntaxError:
		offset = e.Offset
	default:
		return err.Error()
	}
	before := text[:min(int(offset), len(text))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - 1 - bytes.LastIndexByte(before, '\n')
	return fmt.Sprintf("line %d, column %d: %s", line, column, err)
}

// checkJob refuses a test job that the hosted API would refuse.
func checkJob(flag string, job json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(job, &fields); err != nil {
		return usagef(`--%s: want a JSON object with an "input", like {"input": {…}}`, flag)
	}
	if input, ok := fields["input"]; !ok || string(input) == "null" {
		return usagef(`--%s: the job has no "input"; wrap it as {"input": {…}}`, flag)
	}
	return nil
}
