package cudaprobe

import (
	"errors"

	"runpodctl-worker/internal/checks/gpu/wire"
)

const peerBytes = 16 << 20

var errPeerDiffers = errors.New("what arrived is not what was sent")

// peer is the mode that copies from one GPU straight to another.
func peer(s *session, o options) {
	indexes, ok := s.open(o.from, o.to)
	if !ok {
		return
	}
	source, ok := s.enter(indexes[0])
	if !ok {
		return
	}
	target, ok := s.enter(indexes[1])
	if ok && source.copyTo(target, wire.Peer{From: o.from, To: o.to}) && target.leave() {
		source.leave()
	}
}

// copyTo copies a pattern and looks at what arrived.
func (g *gpu) copyTo(target *gpu, result wire.Peer) bool {
	return g.step(wire.CUDAPeer, func() (any, error) {
		var err error
		result.Possible, err = g.context.CanAccess(target.context)
		if err != nil || !result.Possible {
			return result, err
		}
		err = g.context.Scope(func() error {
			return target.context.Scope(func() error { return g.verifiedCopy(target, &result) })
		})
		return result, err
	})
}

func (g *gpu) verifiedCopy(target *gpu, result *wire.Peer) error {
	from, err := g.context.Alloc(peerBytes)
	if err != nil {
		return err
	}
	to, err := target.context.Alloc(peerBytes)
	if err != nil {
		return err
	}
	if err := writePattern(g.context, from, peerBytes, 0); err != nil {
		return err
	}
	// What stands there before differs in every bit, so that a copy that never happens shows.
	if err := writePattern(target.context, to, peerBytes, ^uint32(0)); err != nil {
		return err
	}
	if err := g.context.OpenPeer(target.context); err != nil {
		return err
	}
	if err := g.context.CopyPeer(target.context, to, from, peerBytes); err != nil {
		return err
	}
	if err := g.context.Synchronize(); err != nil {
		return err
	}
	var found wire.MemoryTest
	if err := comparePattern(target.context, to, peerBytes, 0, &found); err != nil {
		return err
	}
	result.Bytes, result.BadWords = peerBytes, found.BadWords
	if found.BadWords > 0 {
		return errPeerDiffers
	}
	return nil
}
