package redact

import "strings"

// CutString is String for a text that may be cut at its end, in the middle of a secret.
func (s *Secrets) CutString(text string) string {
	if n := s.cutValue(text); n > 0 {
		return s.String(text[:len(text)-n]) + Mark
	}
	return apply(torn, s.String(text))
}

// cutValue is how much of a known value stands at the end of a text; less than shortest tells nobody anything.
func (s *Secrets) cutValue(text string) (most int) {
	if s == nil {
		return 0
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, value := range s.values {
		if n := begun(text, value); n >= shortest {
			most = max(most, n)
		}
	}
	return most
}

// between is the last place up to at where a text can be cut without cutting a secret in two; 0 if there is none.
func (s *Secrets) between(text string, at int) int {
	spans := s.spans(text)
	for again := true; again; {
		again = false
		for _, span := range spans {
			if span[0] < at && at < span[1] {
				at, again = span[0], true
			}
		}
	}
	return at
}

// spans are the places in a text where something is replaced.
func (s *Secrets) spans(text string) (spans [][]int) {
	lower := strings.ToLower(text)
	for _, f := range all {
		if f.hinted(lower) {
			spans = append(spans, f.find().FindAllStringIndex(text, -1)...)
		}
	}
	if s == nil {
		return spans
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, value := range s.values {
		for from := 0; ; {
			i := strings.Index(text[from:], value)
			if i < 0 {
				break
			}
			spans = append(spans, []int{from + i, from + i + len(value)})
			from += i + 1
		}
	}
	return spans
}
