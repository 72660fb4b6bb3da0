package gpu

import (
	"context"
	"fmt"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
)

// pair is a copy from one GPU to its neighbour.
type pair struct{ from, to unit }

func (p pair) String() string { return p.from.name + " → " + p.to.name }

// neighbours are the pairs to test, both ways. Slices have no way to each other.
func neighbours(units []unit) []pair {
	var whole []unit
	for _, u := range units {
		if !u.slice {
			whole = append(whole, u)
		}
	}
	var pairs []pair
	for i := 1; i < len(whole); i++ {
		pairs = append(pairs, pair{whole[i-1], whole[i]}, pair{whole[i], whole[i-1]})
	}
	return pairs
}

// testPeers copies between neighbours. A machine without such a way is fine; one that promises it and breaks the data
// hangs or corrupts every training run, though a worker that uses one GPU at a time may go on.
func (d *Driver) testPeers(ctx context.Context, s *survey, units []unit) []finding {
	pairs := neighbours(units)
	found := make([][]finding, len(pairs))
	d.parallel(len(pairs), func(i int) {
		p := pairs[i]
		lines, err := d.helpers.ask(ctx, question{
			helper: CUDAHelper, args: []string{"peer", "--from", p.from.uuid, "--to", p.to.uuid},
			environ: helperEnviron(s.environ, p.from.uuid+","+p.to.uuid, ""),
		})
		found[i] = judgePeer(p, lines, err)
	})
	var all []finding
	for _, f := range found {
		all = append(all, f...)
	}
	return all
}

const remedyPeer = "Set NCCL_P2P_DISABLE=1 for programs that use several GPUs. On the host, look at IOMMU and ACS settings, which break such copies."

func judgePeer(p pair, lines []wire.Line, err error) []finding {
	f := finding{status: checks.Warn, unit: p.String(), remedy: remedyPeer}
	result, _ := data[wire.Peer](lines, wire.CUDAPeer)
	line, broken := failedLine(lines)
	switch {
	case result.BadWords > 0:
		f.text = fmt.Sprintf("a copy between the GPUs arrives damaged: %d of %d words", result.BadWords, result.Bytes/4)
	case broken:
		f.text = "a copy between the GPUs fails: " + failed("", line).text
	case err != nil:
		f.text = "a copy between the GPUs fails: " + err.Error()
	default:
		return nil
	}
	return []finding{f}
}
