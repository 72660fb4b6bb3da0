package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// commit makes what was copied the mirror. The manifest is written first, since the volume may have no room for it, and gets its name last.
func (u *upload) commit(ctx context.Context) error {
	m, err := draftManifest(u.mirror.root, u.manifest())
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	if u.archive != nil {
		u.staged, u.archive = append(u.staged, u.archive), nil
	}
	u.staged = append(u.staged, m)
	for len(u.staged) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := u.staged[0].land(); err != nil {
			return fmt.Errorf("put a copy in its place: %w", err)
		}
		u.staged = u.staged[1:]
	}
	if len(u.plan.small) == 0 {
		if err := u.mirror.root.Remove(archiveName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the archive, of which nothing is left: %w", err)
		}
	}
	return nil
}

func (u *upload) manifest() *manifest {
	m := &manifest{Version: version, Threshold: threshold, Small: []entry{}, Big: []entry{}, Links: u.tree.links}
	switch {
	case u.archive != nil:
		m.Archive = u.mirror.archive(u.archive.name)
	case len(u.plan.small) > 0:
		m.Archive = u.mirror.archive(archiveName)
	}
	for _, list := range [][]entry{u.plan.kept, u.packed, u.copied} {
		for _, e := range list {
			switch {
			case isRef(e.Path):
				m.Refs = append(m.Refs, e)
			case packed(e.Size):
				m.Small = append(m.Small, e)
			default:
				m.Big = append(m.Big, e)
			}
		}
	}
	return m
}

// sent counts what the mirror did not have before. Small files that have not changed are packed again with the others.
func (u *upload) sent() Count {
	var n Count
	for _, e := range u.copied {
		n.add(e.Size)
	}
	for _, e := range u.packed {
		if k := u.plan.known[e.Path]; !k.packed || k.CRC32C != e.CRC32C || k.nanos() != e.nanos() {
			n.add(e.Size)
		}
	}
	return n
}

// cleanUp removes what did not become part of the mirror.
func (u *upload) cleanUp() {
	if u.archive != nil {
		u.archive.drop()
	}
	for _, t := range u.staged {
		t.drop()
	}
}
