package volume

import (
	"context"
	"os"
)

func (c *Cache) sync(ctx context.Context, p *pulse) (result, error) {
	t, m, err := c.look(ctx, p, c.openToWrite)
	if err != nil {
		return result{}, err
	}
	defer m.close()
	if !c.anyDir() { // else a worker that has not made its folders yet would empty the mirror
		return result{seen: t.found}, nil
	}
	plan, err := c.planSync(ctx, p, t, m)
	if err != nil {
		return result{}, err
	}
	r := result{seen: t.found}
	if !plan.nothing() {
		err = c.syncLocked(ctx, p, t, m, &r)
	} else {
		r.report.Unchanged = len(t.files)
	}
	r.report.Skipped, r.report.SkippedTotal = t.skips.list, t.skips.total
	return r, err
}

func (c *Cache) anyDir() bool {
	for _, dir := range c.dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return true
		}
	}
	return false
}

// syncLocked takes the lock and looks again.
func (c *Cache) syncLocked(ctx context.Context, p *pulse, t *tree, m *mirror, r *result) error {
	l, err := m.lock(ctx, p, c)
	if err != nil {
		return err
	}
	defer l.release()
	plan, err := c.planSync(ctx, p, t, m)
	if err != nil {
		return err
	}
	if err := c.checkDropped(p, t, m); err != nil {
		return err
	}
	if err := m.sweep(ctx, p, c.limits.temps); err != nil {
		return err
	}
	dirs, err := c.openDirs(nil)
	if err != nil {
		return err
	}
	defer dirs.close()
	if dirs.none() { // they were taken away while the lock was waited for
		return nil
	}
	job := &upload{cache: c, pulse: p, mirror: m, dirs: dirs, plan: plan, tree: t}
	defer job.cleanUp()
	p.begin("sync", plan.load())
	if err := job.copy(ctx); err != nil {
		return err
	}
	if err := l.held(); err != nil {
		return err
	}
	if err := job.commit(ctx); err != nil {
		return err
	}
	sent := job.sent()
	r.report.Files, r.report.Bytes = sent.Files, sent.Bytes
	r.report.Unchanged = len(t.files) - plan.todo.Files
	r.report.Links = len(t.links)
	return nil
}
