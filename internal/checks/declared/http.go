package declared

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"go.yaml.in/yaml/v3"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/config"
	"runpodctl-worker/internal/lazy"
)

// httpCall is a GET whose answer must have one of the statuses; none named: 200 to 299. A redirect is an answer, too: the
// headers may hold keys, and are for this URL alone.
type httpCall struct {
	URL     webURL            `yaml:"url"`
	Status  []int             `yaml:"status"`
	Headers map[string]string `yaml:"headers"` // with ${VARIABLE} for what must not stand in a file
}

type webURL struct{ *url.URL }

// UnmarshalYAML implements yaml.Unmarshaler.
func (u *webURL) UnmarshalYAML(node *yaml.Node) error {
	parsed, err := url.Parse(node.Value)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return at(node, "url: want a URL such as http://localhost:8000/health")
	}
	u.URL = parsed
	return nil
}

// String is the URL without what may hold a key.
func (u webURL) String() string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (h *httpCall) UnmarshalYAML(node *yaml.Node) error {
	type plain httpCall
	if node.Kind == yaml.ScalarNode {
		return h.URL.UnmarshalYAML(node)
	}
	if err := strict(node, (*plain)(h)); err != nil {
		return err
	}
	if h.URL.URL == nil {
		return at(node, "http: want a url")
	}
	for _, status := range h.Status {
		if http.StatusText(status) == "" {
			return at(node, "status: %d is none of HTTP's", status)
		}
	}
	return nil
}

func (h *httpCall) run(ctx context.Context, deps Deps) checks.Result {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL.URL.String(), nil)
	if err != nil {
		return h.failed("it cannot be called")
	}
	for name, value := range h.Headers {
		if value, err = expand(value, deps.Lookup); err != nil {
			return h.failed(fmt.Sprintf("header %s: %s", name, err))
		}
		req.Header.Set(name, value)
	}
	req.Host = req.Header.Get("Host")
	client := http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return h.failed(httpCause(ctx, err))
	}
	_ = resp.Body.Close()
	if !h.wants(resp.StatusCode) {
		return h.failed("answers " + resp.Status)
	}
	return checks.Result{Summary: fmt.Sprintf("%s answers %s", h.URL, resp.Status)}
}

func (h *httpCall) wants(status int) bool {
	if len(h.Status) == 0 {
		return status >= 200 && status < 300
	}
	return slices.Contains(h.Status, status)
}

func (h *httpCall) failed(problem string) checks.Result {
	return failed([]string{h.URL.String() + ": " + problem}, "See whether the service runs, and whether this box may call it.", "")
}

// httpCause is why a call failed, without the URL, which may hold a key.
func httpCause(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return context.Cause(ctx).Error()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

var reference = lazy.Regexp(`\$\{(\w+)\}`)

// expand puts the values of variables in the place of ${NAME}. One that is empty is an error.
func expand(text string, lookup config.Lookup) (string, error) {
	var missing error
	expanded := reference().ReplaceAllStringFunc(text, func(ref string) string {
		name := reference().FindStringSubmatch(ref)[1]
		value, _ := lookup(name)
		if value == "" && missing == nil {
			missing = fmt.Errorf("%s is not set", name)
		}
		return value
	})
	return expanded, missing
}
