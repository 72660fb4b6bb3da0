package store

// line is a list through the records themselves, so that a job that waits costs no second object and leaves
// from any place at once. A record is in one line at most.
type line struct {
	first, last *record
	len         int
}

func (l *line) pushBack(r *record) {
	r.prev, r.next, r.in = l.last, nil, l
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.len++
}

func (l *line) pushFront(r *record) {
	r.prev, r.next, r.in = nil, l.first, l
	if l.first == nil {
		l.last = r
	} else {
		l.first.prev = r
	}
	l.first = r
	l.len++
}

func (l *line) remove(r *record) {
	if r.prev == nil {
		l.first = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.last = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next, r.in = nil, nil, nil
	l.len--
}

// deadlines is a heap of records, the most urgent first.
type deadlines []*record

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].deadline.Before(d[j].deadline) }

func (d deadlines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *deadlines) Push(x any) {
	r := x.(*record)
	r.index = len(*d)
	*d = append(*d, r)
}

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	r := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return r
}

// history keeps the records in the order of submission.
type history struct {
	records []*record
	dropped int
}

func (h *history) add(r *record) { h.records = append(h.records, r) }

// drop forgets a record: its data now, its slot when half of the slots are dead.
func (h *history) drop(r *record) {
	r.gone = true
	r.Payload, r.Output, r.chunks = nil, nil, nil
	if h.dropped++; h.dropped <= len(h.records)/2 {
		return
	}
	live := make([]*record, 0, len(h.records)-h.dropped)
	for _, r := range h.records {
		if !r.gone {
			live = append(live, r)
		}
	}
	h.records, h.dropped = live, 0
}
