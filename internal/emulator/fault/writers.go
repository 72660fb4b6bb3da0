package fault

import "net/http"

// lost takes an answer that nobody will read, and says that all is well.
type lost struct{ header http.Header }

func (l *lost) Header() http.Header         { return l.header }
func (l *lost) WriteHeader(int)             {}
func (l *lost) Write(b []byte) (int, error) { return len(b), nil }
func (l *lost) Flush()                      {}

// cut passes the first bytes of a body on.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(b []byte) (int, error) {
	if pass := b[:min(len(b), c.left)]; len(pass) > 0 {
		c.left -= len(pass)
		if _, err := c.ResponseWriter.Write(pass); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (c *cut) FlushError() error { return http.NewResponseController(c.ResponseWriter).Flush() }

// retyped gives an answer another content type.
type retyped struct {
	http.ResponseWriter
	contentType string
}

func (t *retyped) WriteHeader(status int) {
	t.Header().Set("Content-Type", t.contentType)
	t.ResponseWriter.WriteHeader(status)
}

func (t *retyped) Write(b []byte) (int, error) {
	t.Header().Set("Content-Type", t.contentType) // too late, and harmless, after WriteHeader
	return t.ResponseWriter.Write(b)
}

func (t *retyped) Unwrap() http.ResponseWriter { return t.ResponseWriter }
