package worker

import (
	"errors"
	"net/http"

	"runpodctl-worker/internal/protocol"
)

// call is a kind of call that is made until the platform has decided about it.
type call int

const (
	take call = iota
	result
	chunk
	calls
)

// answer is what came of a call, as far as calls are treated differently for it.
type answer int

const (
	accepted  answer = iota // any 2xx
	garbled                 // a 2xx whose body cannot be understood
	silence                 // none: nobody there, too late, broken off
	cutOff                  // the connection was reset while a large body was on its way
	overload                // 408, 425, 429 and 5xx
	rejection               // 400, 413
	lostPage                // 404 with the page of some proxy
	oblivion                // 404, 409, 410, 422
	denial                  // 401, 403
	nonsense                // redirects, and what the platform has no meaning for
	nowhere                 // the platform gave no URL, so nothing was sent
	answers
)

// verdict is what follows from an answer.
type verdict int

const (
	again    verdict = iota // later, for as long as the budget of the call lasts
	settled                 // the platform has it
	shrink                  // what was posted is the trouble: something small has to take its place
	unwanted                // the platform has no use for it any more
	hopeless                // it will not get better
)

// final tells whether the platform has decided: there is no point in another try, ever.
func (v verdict) final() bool { return v == settled || v == shrink || v == unwanted }

const (
	// The page of a proxy that has lost the platform looks like a job that is not there.
	maxPages = 2
	// Some proxies cut the connection of a body that is too large for them instead of saying so. But so
	// does a platform that is being restarted, hence the number.
	maxCuts = 12
	// A wrong key does not become right, but one that is being rotated does, within minutes.
	maxDenials = 16
	largeBody  = 1 << 20
)

// rule is a verdict, and what it turns into once the same answer has come so many times.
type rule struct {
	verdict verdict
	times   int // 0: it stays what it is
	then    verdict
}

func is(v verdict) rule                  { return rule{verdict: v} }
func until(times int, then verdict) rule { return rule{again, times, then} }

// policy is what every answer means to every call. A take is always made again, since nothing can be lost by asking;
// 400 is how the platform says that it has no job for a worker that it has just thawed.
var policy = [answers][calls]rule{
	//          take         result                       chunk
	accepted:  {is(settled), is(settled), is(settled)},
	garbled:   {is(again), is(settled), is(settled)},
	silence:   {is(again), is(again), is(again)},
	cutOff:    {is(again), until(maxCuts, shrink), until(maxCuts, shrink)},
	overload:  {is(again), is(again), is(again)},
	rejection: {is(settled), is(shrink), is(shrink)},
	lostPage:  {is(again), until(maxPages, unwanted), until(maxPages, unwanted)},
	oblivion:  {is(again), is(unwanted), is(unwanted)},
	denial:    {is(again), until(maxDenials, hopeless), until(maxDenials, hopeless)},
	nonsense:  {is(again), until(maxDenials, hopeless), until(maxDenials, hopeless)},
	nowhere:   {is(again), is(hopeless), is(hopeless)},
}

// answerTo tells what came of a call that carried so many bytes.
func answerTo(size int64, err error) answer {
	if err == nil {
		return accepted
	}
	if errors.Is(err, protocol.ErrNoURL) {
		return nowhere
	}
	if _, ok := errors.AsType[*protocol.DecodeError](err); ok {
		return garbled
	}
	status, ok := errors.AsType[*protocol.StatusError](err)
	if !ok {
		if _, cut := errors.AsType[*protocol.ResetError](err); cut && size >= largeBody {
			return cutOff
		}
		return silence
	}
	switch code := status.Code; code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return overload
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return rejection
	case http.StatusUnauthorized, http.StatusForbidden:
		return denial
	case http.StatusNotFound:
		if status.HTML {
			return lostPage
		}
		return oblivion
	case http.StatusConflict, http.StatusGone, http.StatusUnprocessableEntity:
		return oblivion
	default:
		if code >= http.StatusInternalServerError {
			return overload
		}
		return nonsense
	}
}

// patience applies the policy to one call that is made again and again. Its zero value has seen nothing.
type patience struct{ seen [answers]int }

func (p *patience) judge(c call, size int64, err error) verdict {
	a := answerTo(size, err)
	if a != cutOff && a != silence {
		p.seen[cutOff] = 0 // the platform does answer
	}
	p.seen[a]++
	r := policy[a][c]
	if r.times > 0 && p.seen[a] >= r.times {
		return r.then
	}
	return r.verdict
}
