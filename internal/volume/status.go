package volume

import (
	"context"
	"errors"
	"io/fs"
)

// Status looks at both sides.
func (c *Cache) Status(ctx context.Context) (Status, error) { return guard(ctx, c, c.status) }

func (c *Cache) status(ctx context.Context, p *pulse) (Status, error) {
	s := Status{Mirror: c.mirrorPath()}
	t, err := c.scan(ctx, p)
	if err != nil {
		return s, err
	}
	m, err := c.openToRead()
	if err != nil {
		return s, err
	}
	if m == nil {
		m = &mirror{}
	} else {
		defer m.close()
		if s.Writer, err = m.writer(); err != nil {
			return s, err
		}
	}
	plan, err := c.planSync(ctx, p, t, m)
	if err != nil {
		return s, err
	}
	s.ToSync, s.Skipped = plan.todo, t.skips.list
	if m.manifest != nil {
		s.describe(m.manifest)
		s.ToHydrate = c.planHydrate(t, m.manifest).todo
	}
	return s, nil
}

func (s *Status) describe(m *manifest) {
	s.Present, s.Written, s.Links = true, m.written, len(m.Links)
	for _, k := range m.files {
		if k.packed {
			s.Small.add(k.Size)
		} else {
			s.Big.add(k.Size)
		}
	}
}

// writer tells who holds the lock.
func (m *mirror) writer() (*Writer, error) {
	o, age, err := lookAtLock(m.root)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errIrregular) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Writer{Host: o.Host, PID: o.PID, Age: age.Seconds()}, nil
}
