package fault

import (
	"encoding/json"
	"fmt"
	"net/http"

	"runpodctl-worker/internal/protocol/server"
)

// maxPlan bounds the body of a POST.
const maxPlan = 1 << 20

// ServeHTTP shows the rules in force (GET), adds to them (POST) and takes them away (DELETE).
func (i *Injector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		body, err := server.ReadBody(r, maxPlan)
		if err != nil {
			server.WriteError(w, err)
			return
		}
		plan, err := Parse(body)
		if err != nil {
			server.WriteProblem(w, http.StatusBadRequest, "bad request: "+err.Error())
			return
		}
		i.Add(plan)
		i.show(w)
	case http.MethodDelete:
		server.WriteJSON(w, http.StatusOK, fmt.Appendf(nil, `{"removed":%d}`, i.Clear()))
	default:
		i.show(w)
	}
}

func (i *Injector) show(w http.ResponseWriter) {
	body, err := json.Marshal(map[string]any{"rules": i.list()})
	if err != nil { // plain values always encode
		server.WriteProblem(w, http.StatusInternalServerError, "internal error")
		return
	}
	server.WriteJSON(w, http.StatusOK, body)
}
