package volume

import (
	"encoding/json"
	"strconv"
	"strings"
)

// decodeManifest reads a manifest in the form that both programs write, several times as fast as encoding/json does: nothing else costs
// as much when nothing has changed. It is false for any other form, of which encoding/json knows what to make.
func decodeManifest(data []byte) (*manifest, bool) {
	m, d := &manifest{}, decoder{text: string(data)}
	if !d.object(func(key string) bool { return d.field(m, key) }) {
		return nil, false
	}
	d.space()
	return m, d.at == len(d.text)
}

const digits = "0123456789"

// decoder is a place in a JSON text. Its methods are false where something else stands.
type decoder struct {
	text string
	at   int
}

func (d *decoder) field(m *manifest, key string) bool {
	switch key {
	case "version":
		return integer(d, &m.Version)
	case "threshold":
		return integer(d, &m.Threshold)
	case "small":
		return list(d, &m.Small, d.entry)
	case "big":
		return list(d, &m.Big, d.entry)
	case "refs":
		return list(d, &m.Refs, d.entry)
	case "links":
		return list(d, &m.Links, d.link)
	case "archive":
		return d.object(func(key string) bool {
			switch key {
			case "size":
				return integer(d, &m.Archive.Size)
			case "mtime_ns":
				return integer(d, &m.Archive.Nanos)
			}
			return false
		})
	}
	return false
}

func (d *decoder) entry(e *entry) bool {
	return d.object(func(key string) bool {
		switch key {
		case "path":
			return d.string(&e.Path)
		case "size":
			return integer(d, &e.Size)
		case "mtime":
			return d.float(&e.MTime)
		case "mtime_ns":
			return integer(d, &e.Nanos)
		case "mode":
			return integer(d, &e.Mode)
		case "uid":
			return integer(d, &e.UID)
		case "gid":
			return integer(d, &e.GID)
		case "crc32c":
			return d.string(&e.CRC32C)
		}
		return false
	})
}

func (d *decoder) link(l *link) bool {
	return d.object(func(key string) bool {
		switch key {
		case "path":
			return d.string(&l.Path)
		case "target":
			return d.string(&l.Target)
		}
		return false
	})
}

// object reads an object by what reads the value of a key.
func (d *decoder) object(value func(key string) bool) bool {
	return d.sequence('{', '}', func() bool {
		var key string
		return d.string(&key) && d.next(':') && value(key)
	})
}

// list reads a list that was not there before: encoding/json reads a second one over the first.
func list[T any](d *decoder, into *[]T, item func(*T) bool) bool {
	if *into != nil {
		return false
	}
	*into = []T{}
	return d.sequence('[', ']', func() bool {
		*into = append(*into, *new(T))
		return item(&(*into)[len(*into)-1])
	})
}

func (d *decoder) sequence(begin, end byte, item func() bool) bool {
	if !d.next(begin) {
		return false
	}
	if d.next(end) {
		return true
	}
	for item() {
		if d.next(end) {
			return true
		}
		if !d.next(',') {
			break
		}
	}
	return false
}

// next passes a character that must be here.
func (d *decoder) next(c byte) bool {
	d.space()
	if d.at == len(d.text) || d.text[d.at] != c {
		return false
	}
	d.at++
	return true
}

func (d *decoder) space() {
	for d.at < len(d.text) && strings.IndexByte(" \t\r\n", d.text[d.at]) >= 0 {
		d.at++
	}
}

// string reads a string. One that is not plain is left to encoding/json.
func (d *decoder) string(into *string) bool {
	d.space()
	begin, plain := d.at, true
	if !d.next('"') {
		return false
	}
	for ; d.at < len(d.text); d.at++ {
		switch c := d.text[d.at]; {
		case c == '"':
			d.at++
			if plain {
				*into = d.text[begin+1 : d.at-1]
				return true
			}
			return json.Unmarshal([]byte(d.text[begin:d.at]), into) == nil
		case c == '\\':
			plain = false
			d.at++
		case c < ' ' || c > '~':
			plain = false
		}
	}
	return false
}

func integer[T int | int64 | uint32](d *decoder, into *T) bool {
	text := d.number()
	n, err := strconv.ParseInt(text, 10, 64)
	*into = T(n)
	return err == nil && int64(*into) == n && (n != 0 || text == "0")
}

func (d *decoder) float(into *float64) bool {
	var err error
	*into, err = strconv.ParseFloat(d.number(), 64)
	return err == nil
}

// number passes a number, and is empty if JSON has no such form of one, although strconv may.
func (d *decoder) number() string {
	d.space()
	begin := d.at
	for d.at < len(d.text) && strings.IndexByte(digits+"+-.eE", d.text[d.at]) >= 0 {
		d.at++
	}
	text := d.text[begin:d.at]
	whole := strings.TrimPrefix(text, "-")
	rest := strings.TrimLeft(whole, digits)
	whole = strings.TrimSuffix(whole, rest)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return ""
	}
	if after, ok := strings.CutPrefix(rest, "."); ok && strings.TrimLeft(after, digits) == after {
		return ""
	}
	return text
}
