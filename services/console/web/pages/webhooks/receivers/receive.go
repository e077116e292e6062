// Receives the webhooks of TENANT: WEBHOOK_SECRET=whsec_... go run receive.go
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var key, _ = base64.StdEncoding.DecodeString(
	strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
var seen sync.Map // yours is a table with a unique key

func isGenuine(header http.Header, body []byte) bool {
	id, at := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	expected := []byte("v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	for _, text := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(text), expected) {
			return true
		}
	}
	return false
}

func receive(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body) // the raw bytes, before any parser
	if err != nil || !isGenuine(request.Header, body) {
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, known := seen.LoadOrStore(request.Header.Get("webhook-id"), true)
	response.WriteHeader(http.StatusNoContent)
	var alert struct {
		ID string `json:"alert_id"`
	}
	if json.Unmarshal(body, &alert) == nil && !known {
		fmt.Println(alert.ID)
	}
}

func main() {
	http.HandleFunc("WEBHOOK_PATH", receive)
	log.Fatal(http.ListenAndServe("127.0.0.1:WEBHOOK_PORT", nil))
}
