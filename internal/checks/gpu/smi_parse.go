package gpu

import (
	"strconv"
	"strings"

	"runpodctl-worker/internal/checks"
	"runpodctl-worker/internal/checks/gpu/wire"
	"runpodctl-worker/internal/lazy"
)

var (
	// Newer tables say "CUDA UMD Version" and "KMD Version".
	smiCUDA   = lazy.Regexp(`CUDA (?:UMD )?Version\s*:\s*(\d{1,4}\.\d{1,4})`)
	smiDriver = lazy.Regexp(`(?:Driver|KMD) Version\s*:\s*(\d+(?:\.\d+)+)`)

	smiParent = lazy.Regexp(`^GPU (\d+): .*\(UUID: ([^)]+)\)`)
	smiSlice  = lazy.Regexp(`^\s+MIG (\S+)\s+Device\s+\d+: \(UUID: ([^)]+)\)`)
	sliceGB   = lazy.Regexp(`g\.(\d{1,4})gb`)
)

// parseHeader reads the versions in the head of the table that nvidia-smi prints.
func parseHeader(text string) wire.Driver {
	var d wire.Driver
	if m := smiDriver().FindStringSubmatch(text); m != nil {
		d.Version = m[1]
	}
	if m := smiCUDA().FindStringSubmatch(text); m != nil {
		if v, err := checks.ParseVersion(m[1]); err == nil {
			d.CUDA = encodeCUDA(v)
		}
	}
	return d
}

// parseRows reads the rows of a query for smiFields. What a row does not know, "[N/A]" or "[Not Supported]", stays nil.
func parseRows(text string) (health []wire.Health, lost []wire.Line) {
	for row := range strings.Lines(text) {
		values := strings.Split(strings.TrimSpace(row), ",")
		index, err := strconv.Atoi(strings.TrimSpace(values[0]))
		if err != nil {
			continue // "No devices were found", or a warning
		}
		if code := lostCode(row); code != 0 {
			lost = append(lost, lostLine(index, code))
			continue
		}
		value := func(i int) string {
			if i < len(values) {
				return strings.TrimSpace(values[i])
			}
			return ""
		}
		h := wire.Health{Index: index, Name: value(1), UUID: value(2), PCI: value(3)}
		total, known := number(value(4))
		if known {
			free, _ := number(value(5))
			h.Memory = &wire.NVMLMemory{Total: total << 20, Free: free << 20, Used: (total - min(free, total)) << 20}
		}
		if n, known := number(value(6)); known {
			h.ECCVolatile = &n
		}
		switch value(7) {
		case "Enabled":
			h.MIG = new(true)
		case "Disabled":
			h.MIG = new(false)
		}
		h.RecoveryAction = recoveryAction(value(8))
		health = append(health, h)
	}
	return health, lost
}

// number reads a value that may carry its unit.
func number(value string) (uint64, bool) {
	digits, _, _ := strings.Cut(value, " ")
	n, err := strconv.ParseUint(digits, 10, 40)
	return n, err == nil
}

// recoveryAction is the number for the words of nvidia-smi; nil where it does not know.
func recoveryAction(words string) *int {
	for n, action := range recoveryActions {
		if strings.EqualFold(strings.ReplaceAll(words, " ", ""), strings.ReplaceAll(action.words, " ", "")) {
			return new(n)
		}
	}
	return nil
}

// addSlices adds to each GPU the MIG slices that nvidia-smi -L lists below it.
func addSlices(health []wire.Health, list string) {
	at := -1
	for line := range strings.Lines(list) {
		if m := smiParent().FindStringSubmatch(line); m != nil {
			at = -1
			for i, h := range health {
				if h.UUID == m[2] {
					at = i
				}
			}
			continue
		}
		m := smiSlice().FindStringSubmatch(line)
		if m == nil || at < 0 {
			continue
		}
		h := &health[at]
		h.MIGDevices = append(h.MIGDevices, m[2])
		if size := sliceGB().FindStringSubmatch(m[1]); size != nil {
			gb, _ := strconv.ParseUint(size[1], 10, 64) // the pattern is a number
			if h.MIGMemory == nil {
				h.MIGMemory = map[string]wire.NVMLMemory{}
			}
			h.MIGMemory[m[2]] = wire.NVMLMemory{Total: gb << 30}
		}
	}
}
