package gpu

import (
	"strconv"
	"strings"
	"time"

	"runpodctl-worker/internal/lazy"
)

// xidAge is how old an entry of the kernel's log may be to count: what happened before is not held against a worker
// for ever, and what still ails the GPU shows elsewhere.
const xidAge = 10 * time.Minute

// logged is an Xid in the kernel's log.
type logged struct {
	at   time.Duration // since the machine started
	pci  string
	id   int
	line string
}

var (
	xidLine   = lazy.Regexp(`NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d{1,6}),`)
	offTheBus = lazy.Regexp(`(?:NVRM:|The NVIDIA) GPU (?:at PCI:)?([0-9a-fA-F]+:[0-9a-fA-F]+:[0-9a-fA-F]+(?:\.\d)?)\b.*fallen off the bus`)
)

// parseRecord reads a record of /dev/kmsg: "prio,seq,microseconds since the start,flags;text".
func parseRecord(record string) (logged, bool) {
	head, text, ok := strings.Cut(record, ";")
	fields := strings.Split(head, ",")
	if !ok || len(fields) < 3 {
		return logged{}, false
	}
	at, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || at < 0 || at > int64(1<<62)/int64(time.Microsecond) {
		return logged{}, false
	}
	text, _, _ = strings.Cut(text, "\n") // what follows is for programs
	l := logged{at: time.Duration(at) * time.Microsecond, line: text}
	if m := xidLine().FindStringSubmatch(text); m != nil {
		l.pci = m[1]
		l.id, _ = strconv.Atoi(m[2]) // the pattern is a number
		return l, true
	}
	if m := offTheBus().FindStringSubmatch(text); m != nil {
		l.pci, l.id = m[1], 79
		return l, true
	}
	return logged{}, false
}

// recent are the events of the last while that concern one of our GPUs: the log is that of the whole machine.
func recent(entries []logged, now time.Duration, gpus map[string]string) []xidEvent {
	var events []xidEvent
	for _, l := range entries {
		if unit, ours := gpus[busID(l.pci)]; ours && now-l.at <= xidAge {
			events = append(events, xidEvent{gpu: unit, id: l.id, line: l.line})
		}
	}
	return events
}

// busID makes the spellings of a PCI address equal: "00000000:1A:00.0", "0000:1a:00".
func busID(pci string) string {
	pci, _, _ = strings.Cut(strings.ToLower(pci), ".")
	parts := strings.Split(pci, ":")
	if len(parts) == 3 {
		parts[0] = strings.TrimLeft(parts[0], "0")
	}
	return strings.Join(parts, ":")
}
