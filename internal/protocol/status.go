package protocol

// Status is the state of a job as clients read it.
type Status string

// The states that the hosted API reports. RUNNING, which its documentation also names, is never sent.
const (
	InQueue    Status = "IN_QUEUE"
	InProgress Status = "IN_PROGRESS"
	Completed  Status = "COMPLETED"
	Failed     Status = "FAILED"
	Cancelled  Status = "CANCELLED"
	TimedOut   Status = "TIMED_OUT"
)

// Terminal reports whether a job in this state never changes again, short of an explicit retry.
func (s Status) Terminal() bool {
	switch s {
	case Completed, Failed, Cancelled, TimedOut:
		return true
	default:
		return false
	}
}
