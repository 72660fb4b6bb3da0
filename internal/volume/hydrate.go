package volume

import (
	"cmp"
	"context"
	"slices"
)

// rereads bounds how often a hydrate begins anew because the mirror is another by now.
const rereads = 2

// hydrate looks again where another worker has replaced the mirror meanwhile: what the older manifest names may be gone then.
func (c *Cache) hydrate(ctx context.Context, p *pulse, open func() (*mirror, error)) (result, error) {
	r, replaced, err := c.hydrateOnce(ctx, p, open)
	for n := 0; n < rereads && replaced && err == nil; n++ {
		before := r.report
		r, replaced, err = c.hydrateOnce(ctx, p, open)
		r.report.follow(before)
	}
	return r, err
}

func (c *Cache) hydrateOnce(ctx context.Context, p *pulse, open func() (*mirror, error)) (r result, replaced bool, err error) {
	t, m, err := c.look(ctx, p, open)
	if err != nil {
		return result{}, false, err
	}
	r = result{seen: t.found}
	if m == nil {
		return r, false, nil
	}
	defer m.close()
	if m.manifest == nil {
		return r, false, nil
	}
	t.skips = skips{} // of what is here only a sync has to speak
	plan := c.planHydrate(t, m.manifest)
	d := &download{cache: c, pulse: p, mirror: m, left: &t.skips}
	if plan.todo.Files > 0 || len(plan.links) > 0 {
		err = d.run(ctx, plan)
	}
	if d.files.Files > 0 || d.links > 0 {
		if now, err := c.scan(ctx, p); err == nil {
			r.seen = now.found
		}
	}
	c.removeTemps(t)
	r.report = Report{
		Files: d.files.Files, Bytes: d.files.Bytes, Small: d.unpacked, Links: d.links, Unchanged: plan.unchanged,
		Skipped: t.skips.list, SkippedTotal: t.skips.total,
	}
	return r, t.skips.total > 0 && m.replaced(), err
}

// follow adds what an earlier look has copied.
func (r *Report) follow(before Report) {
	r.Unchanged = max(r.Unchanged-before.Files, 0)
	r.Files += before.Files
	r.Bytes += before.Bytes
	r.Small += before.Small
	r.Links += before.Links
}

// hydratePlan is what a hydrate has to do.
type hydratePlan struct {
	small     map[string]entry
	big       []entry
	links     []link
	dirs      map[int]bool // that something goes to: an empty one might be taken for one that is full
	unchanged int
	todo      Count
}

// planHydrate compares the mirror with the directories.
func (c *Cache) planHydrate(t *tree, m *manifest) *hydratePlan {
	plan := &hydratePlan{small: map[string]entry{}, dirs: map[int]bool{}}
	for _, bad := range m.bad {
		t.skips.add(bad.Path, bad.Reason)
	}
	for name, k := range m.files {
		here, exists := t.found[name]
		dir, _, cached := c.locate(name)
		switch {
		case !cached || excluded(name):
			t.skips.add(name, "it is not in a directory that is cached")
		case exists && here.link:
			t.skips.add(name, "there is a link in its place")
		case exists && !k.replaces(here):
			plan.unchanged++
		default:
			plan.add(k)
			plan.dirs[dir] = true
		}
	}
	slices.SortFunc(plan.big, func(a, b entry) int { return cmp.Compare(b.Size, a.Size) }) // the longest first
	for _, l := range m.Links {
		if _, exists := t.found[l.Path]; !exists {
			plan.links = append(plan.links, l)
			if dir, _, cached := c.locate(l.Path); cached {
				plan.dirs[dir] = true
			}
		}
	}
	return plan
}

// replaces tells whether a file of the mirror is to take the place of one that is here. What is newer was made here, on purpose.
func (e entry) replaces(here stamp) bool {
	return !e.matches(here) && here.mtime <= e.nanos()+e.slack()
}

func (plan *hydratePlan) add(k known) {
	plan.todo.add(k.Size)
	if k.packed {
		plan.small[k.Path] = k.entry
	} else {
		plan.big = append(plan.big, k.entry)
	}
}
