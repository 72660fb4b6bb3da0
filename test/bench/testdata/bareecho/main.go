// Command bareecho reads and writes the JSON of /run and /status with the same web library, and does nothing
// else: there is no queue behind it, no state, and no check.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

type submit struct {
	Input   json.RawMessage `json:"input"`
	Webhook string          `json:"webhook"`
	Policy  json.RawMessage `json:"policy"`
}

type job struct {
	DelayTime     int             `json:"delayTime,omitempty"`
	ExecutionTime int             `json:"executionTime,omitempty"`
	ID            string          `json:"id"`
	Output        json.RawMessage `json:"output,omitempty"`
	Status        string          `json:"status"`
	WorkerID      string          `json:"workerId,omitempty"`
}

func main() {
	e := echo.New()
	e.POST("/v2/:endpoint/run", func(c echo.Context) error {
		var s submit
		if err := json.NewDecoder(c.Request().Body).Decode(&s); err != nil || s.Input == nil {
			return echo.ErrBadRequest
		}
		return c.JSON(http.StatusOK, job{ID: uuid.NewString() + "-u1", Status: "IN_QUEUE"})
	})
	e.GET("/v2/:endpoint/status/:job", func(c echo.Context) error {
		return c.JSON(http.StatusOK, job{
			DelayTime: 1, ExecutionTime: 1, ID: c.Param("job"), Output: json.RawMessage(`{"n":1}`),
			Status: "COMPLETED", WorkerID: "abcdefghijklmn",
		})
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "http://%s\n", listener.Addr())
	server := http.Server{Handler: e}
	fmt.Fprintln(os.Stderr, server.Serve(listener))
}
