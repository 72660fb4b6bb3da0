package ready

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// web is ready when a GET is answered with a status below 400.
type web struct{ url *url.URL }

func (w web) String() string { return w.url.Redacted() }

// asker has no proxy, since what it asks is this machine or its neighbour, and keeps no connection, so that each
// answer comes from a server that still accepts new ones.
var asker = &http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Check does not read the body, of which a server may have any amount.
func (w web) Check(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url.String(), nil)
	if err != nil {
		return err
	}
	resp, err := asker.Do(req)
	if err != nil {
		if inURL, ok := errors.AsType[*url.Error](err); ok {
			err = inURL.Err // the URL may hold a password
		}
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return nil
}
