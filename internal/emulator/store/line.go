package store

// line is the queue: a list through the records themselves, so that a job that waits costs no second
// object and leaves from any place at once.
type line struct {
	first, last *record
	len         int
}

func (l *line) pushBack(r *record) {
	r.prev, r.next, r.queued = l.last, nil, true
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
	l.len++
}

func (l *line) pushFront(r *record) {
	r.prev, r.next, r.queued = nil, l.first, true
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
	r.prev, r.next, r.queued = nil, nil, false
	l.len--
}
