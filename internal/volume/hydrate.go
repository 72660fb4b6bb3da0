package volume

import (
	"cmp"
	"context"
	"slices"
)

func (c *Cache) hydrate(ctx context.Context, p *pulse) (result, error) {
	t, m, err := c.look(ctx, p, c.openToRead)
	if err != nil {
		return result{}, err
	}
	r := result{seen: t.found}
	if m == nil {
		return r, nil
	}
	defer m.close()
	if m.manifest == nil {
		return r, nil
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
	return r, err
}

// hydratePlan is what a hydrate has to do.
type hydratePlan struct {
	small     map[string]entry
	big       []entry
	links     []link
	unchanged int
	todo      Count
}

// planHydrate compares the mirror with the directories.
func (c *Cache) planHydrate(t *tree, m *manifest) *hydratePlan {
	plan := &hydratePlan{small: map[string]entry{}}
	for _, bad := range m.bad {
		t.skips.add(bad.Path, bad.Reason)
	}
	for name, k := range m.files {
		here, exists := t.found[name]
		_, _, cached := c.locate(name)
		switch {
		case !cached || excluded(name):
			t.skips.add(name, "it is not in a directory that is cached")
		case exists && here.link:
			t.skips.add(name, "there is a link in its place")
		case exists && (k.matches(here) || here.mtime > k.nanos()+k.slack()): // what is newer was made here, on purpose
			plan.unchanged++
		default:
			plan.add(k)
		}
	}
	slices.SortFunc(plan.big, func(a, b entry) int { return cmp.Compare(b.Size, a.Size) }) // the longest first
	for _, l := range m.Links {
		if _, exists := t.found[l.Path]; !exists {
			plan.links = append(plan.links, l)
		}
	}
	return plan
}

func (plan *hydratePlan) add(k known) {
	plan.todo.add(k.Size)
	if k.packed {
		plan.small[k.Path] = k.entry
	} else {
		plan.big = append(plan.big, k.entry)
	}
}
